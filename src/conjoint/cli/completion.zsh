#compdef conjoint
# zsh completion of conjoint; ~/.zshrc, after compinit: eval "$(conjoint completion zsh)"
_conjoint() {
    local -a verbs=(
@verbs@
    )
    if ((CURRENT == 2)); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    ((CURRENT--))
    case $verb in
@options@
    esac
}
compdef _conjoint conjoint
