package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// ProjectLabel is the label of pods with the name of their project, such as that of a Compose file. Persistent volumes that a pod creates
// belong to its project.
const ProjectLabel = "project"

// AliasesAnnotation lists other names by which other pods reach a pod, separated by commas or spaces. They may have the underscores and the
// upper case letters of names of Compose, which names of pods do not have.
const AliasesAnnotation = "podstead.io/aliases"

// maxAliases limits the aliases of a pod: they are in the hosts files of all pods.
const maxAliases = 32

// Aliases returns the names of [AliasesAnnotation] without those that are repeated.
func (p *Pod) Aliases() []string {
	var list []string
	for _, name := range strings.FieldsFunc(p.Annotations[AliasesAnnotation], func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

var alias = lazyregexp.New(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)

// IsAlias reports whether a name can be an alias of a pod.
func IsAlias(name string) bool { return alias.MatchString(name) && !isReserved(strings.ToLower(name)) }

// aliases validates the annotation for aliases.
func (v *validator) aliases() {
	if _, has := v.pod.Annotations[AliasesAnnotation]; !has {
		return
	}
	at, list := entry{&v.pod.Annotations, AliasesAnnotation}, v.pod.Aliases()
	if len(list) == 0 || len(list) > maxAliases {
		v.bad(at, "must have between 1 and %d names, found %d", maxAliases, len(list))
	}
	for _, name := range list {
		switch why := Unpublished(strings.ToLower(name), nil); {
		case isReserved(strings.ToLower(name)):
			v.bad(at, "Invalid value: %s: %s", quote(name), reservedName)
		case !IsAlias(name):
			v.bad(at, "Invalid value: %s: %s", quote(name), fmt.Sprintf("must be at most %d letters, digits, - and _", maxAliasLength))
		case why != "":
			v.warn(at, "%s", HiddenName{Name: name, Why: why})
		}
	}
}

// maxAliasLength is the maximum length of an alias, which is that of a DNS label.
const maxAliasLength = 63
