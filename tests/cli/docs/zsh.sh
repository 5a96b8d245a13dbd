# SPDX-License-Identifier: MIT
command -v zsh >/dev/null || { echo "no zsh"; exit 77; }
kopt completion zsh >_kopt
zsh -n _kopt && head -1 _kopt
