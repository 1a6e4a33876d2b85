package spec

import (
	"slices"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// Systemd is the place of a pod in the order of the boot. The pod is started by the unit podstead@NAME.service, and not by the daemon.
// The fields are those of systemd.unit(5); each lists units.
type Systemd struct {
	// Units that start before the pod, and stop after it.
	After []string `json:"after,omitempty"`
	// Units that start after the pod is ready, and stop before it.
	Before []string `json:"before,omitempty"`
	// Units that are started with the pod.
	Wants []string `json:"wants,omitempty"`
	// Units that are started with the pod. It does not start if one of them fails that it is also ordered after, and stops if one of them
	// is stopped.
	Requires []string `json:"requires,omitempty"`
	// As `requires`; the pod also stops if one of them exits.
	BindsTo []string `json:"bindsTo,omitempty"`
	// Units whose stop and restart also stop and restart the pod.
	PartOf []string `json:"partOf,omitempty"`
	// Units that start the pod, such as `multi-user.target`.
	WantedBy []string `json:"wantedBy,omitempty"`
	// Units that start the pod, and that fail to start without it.
	RequiredBy []string `json:"requiredBy,omitempty"`
}

// UnitList is a field of [Systemd].
type UnitList struct {
	Setting string // of a unit file, as in systemd.unit(5)
	Units   []string
}

// Lists returns the fields in the order of the type.
func (s *Systemd) Lists() []UnitList {
	return []UnitList{
		{"After", s.After},
		{"Before", s.Before},
		{"Wants", s.Wants},
		{"Requires", s.Requires},
		{"BindsTo", s.BindsTo},
		{"PartOf", s.PartOf},
		{"WantedBy", s.WantedBy},
		{"RequiredBy", s.RequiredBy},
	}
}

// unitName is the pattern of names of units, see unit_name_is_valid in systemd. A template is not a unit that can be started.
var unitName = lazyregexp.New(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]+)?\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)

// maxUnitName is UNIT_NAME_MAX in systemd.
const maxUnitName = 255

func (v *validator) systemd(s *Systemd) {
	if s == nil {
		return
	}
	for _, list := range s.Lists() {
		for i := range list.Units {
			unit := &list.Units[i]
			switch {
			case len(*unit) > maxUnitName || !unitName.MatchString(*unit):
				v.bad(unit, "must be the name of a systemd unit with its type, such as network-online.target")
			case *unit == "podstead@"+v.pod.Name+".service":
				v.bad(unit, "must not be the unit of the pod itself")
			case *unit == "podstead.service" && list.Setting == "Before":
				v.bad(unit, "must not be podstead.service, which starts before its pods")
			case slices.Contains(list.Units[:i], *unit):
				v.duplicate(unit, *unit)
			}
		}
	}
}
