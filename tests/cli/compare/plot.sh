# SPDX-License-Identifier: MIT
# The picture is well-formed, has a panel for each space, and nothing of a name is markup.
peaks_json A >'a<&>.json'
peaks_json B >b.json
cp b.json 'b copy.json'
kopt compare 'a<&>.json' b.json --methods random,exhaustive --repeats 5 --plot out.svg -q >/dev/null
python3 - <<'P'
import xml.etree.ElementTree as tree
S = "{http://www.w3.org/2000/svg}"
root = tree.parse("out.svg").getroot()
panels = root.findall(f"{S}g")
for p in panels:
    print([t.text for t in p.findall(f"{S}text") if t.get("class") != "tick"], len(p.findall(f"{S}polyline")), len(p.findall(f"{S}polygon")))
    points = [tuple(map(float, w.split(","))) for w in p.find(f"{S}polyline").get("points").split()]
    box = p.find(f"{S}rect")
    x, y, w, h = (float(box.get(k)) for k in ("x", "y", "width", "height"))
    assert len(points) == 100 and all(x - 1 <= a <= x + w + 1 and y - 1 <= b <= y + h + 1 for a, b in points)
print([t.text for t in root.findall(f"{S}text")])
P
try kopt compare b.json --methods random --repeats 1 --plot nowhere/out.svg
# Nothing else is overwritten: not a recording, least of all one that is compared on.
try kopt compare b.json --methods random --repeats 1 --plot b.json
cmp -s b.json 'b copy.json' && echo 'the recording is as it was'
# A picture that is there is not lost to a mistake, and none is left behind by one.
kopt compare b.json --methods magic --plot out.svg 2>/dev/null
kopt compare b.json --methods magic --plot new.svg 2>/dev/null
[ -s out.svg ] && ls
