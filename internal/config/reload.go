package config

import (
	"reflect"

	"github.com/podstead/podstead/spec"
)

// Reload returns a copy of c with the settings of next that a running daemon can apply. It also returns the keys of those that changed,
// and the keys of the settings that differ but need a restart of the daemon, in the order of the documentation.
func (c *Config) Reload(next *Config) (merged *Config, changed, restart []string) {
	copied := *c
	for _, s := range Settings() {
		from, to := s.field(&copied), s.field(next)
		switch {
		case equal(from, to):
		case s.Reloads:
			reflect.ValueOf(from).Elem().Set(reflect.ValueOf(to).Elem())
			changed = append(changed, s.Key)
		default:
			restart = append(restart, s.Key)
		}
	}
	copied.Images.Verify, copied.verify = next.Images.Verify, next.verify // the caller knows whether the keys have changed
	if !reflect.DeepEqual(copied.Engine.RuntimeClasses, next.Engine.RuntimeClasses) {
		copied.Engine.RuntimeClasses = next.Engine.RuntimeClasses
		changed = append(changed, "engine.runtimeClasses")
	}
	if !reflect.DeepEqual(copied.Notify, next.Notify) {
		copied.Notify = next.Notify
		changed = append(changed, "notify")
	}
	return &copied, changed, restart
}

// equal compares two values of one setting. A quantity may be written in several ways, and an empty list may be nil.
func equal(a, b any) bool {
	switch a := a.(type) {
	case *spec.Quantity:
		b, ok := b.(*spec.Quantity)
		return ok && a.Cmp(*b) == 0
	case *[]string:
		b, ok := b.(*[]string)
		return ok && len(*a) == 0 && len(*b) == 0 || reflect.DeepEqual(a, b)
	}
	return reflect.DeepEqual(a, b)
}
