# bash completion of conjoint; ~/.bashrc: eval "$(conjoint completion bash)"
_conjoint() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]} words= kind=
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words=@verbs@ kind=none
    else
        case $verb,$prev in
@values@
        *) case $verb,$cur in
@options@
@places@
            esac ;;
        esac
    fi
    case $kind in
    folder) compopt -o plusdirs +o default 2>/dev/null ;;
    none) compopt +o default 2>/dev/null ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _conjoint conjoint
