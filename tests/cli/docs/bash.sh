# SPDX-License-Identifier: MIT
# The bash completion, asked as the shell asks it: the words so far, the last one being completed.
export KOPT_FAKE_LIBRARY=$FAKE KOPT_STORE=s.db
kopt store import "$DATA/cache.json" >/dev/null
eval "$(kopt completion bash)"
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _kopt 2>/dev/null
    echo "$* -> ${COMPREPLY[*]}"
}
cp "$DATA/rules.cu" "$DATA/plain.cl" .
complete_words kopt ""
complete_words kopt t
complete_words kopt store ""
complete_words kopt store s
complete_words kopt tune --co
complete_words kopt tune --no
complete_words kopt tune --strategy r
complete_words kopt compare --methods ra
complete_words kopt compare --methods bayes,rand
complete_words kopt train --model h
complete_words kopt train --cell g
complete_words kopt tune -d f
complete_words kopt tune -d fake :
complete_words kopt tune -d fake : 0
complete_words kopt --color a
complete_words kopt space --color n
complete_words kopt space ./r
complete_words kopt space rules.cu ""
complete_words kopt space rules.cu M
complete_words kopt store show ""
complete_words kopt store show --outcome comp
complete_words kopt store import ca
complete_words kopt completion ""
complete_words kopt help dev
