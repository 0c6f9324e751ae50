# bash completion for proctally(1)                          -*- shell-script -*-
# SPDX-License-Identifier: MIT

_proctally()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words=

	COMPREPLY=()
	case $prev in
	--rules | --output)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames 2>/dev/null
		return
		;;
	--proc | --sys)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		compopt -o filenames 2>/dev/null
		return
		;;
	--format)
		mapfile -t COMPREPLY < <(compgen -W 'putval influx prometheus graphite netdata' -- "$cur")
		return
		;;
	--interval | --count | --view)
		return
		;;
	esac

	if ((COMP_CWORD == 1)); then
		words='check explain dump match top bench import-netdata --help --version'
	else
		case ${COMP_WORDS[1]} in
		check | import-netdata)
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			compopt -o filenames 2>/dev/null
			return
			;;
		explain)
			words='--rules --proc --view --brief'
			[[ $cur == -* ]] ||
				words=$(cd /proc && printf '%s ' [0-9]*)
			;;
		dump)
			words='--rules --proc --sys --interval --count --format --output --residual'
			;;
		match) words='--rules --proc --sys --interval' ;;
		top) words='--rules --proc --sys --interval --count' ;;
		bench) words='--pss --gpu --count --interval --rules --proc --sys' ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _proctally proctally
