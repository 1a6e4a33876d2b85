package config

import (
	"slices"
	"strings"
	"testing"
)

// TestReload changes every setting, and checks that exactly those that the reference says are reloaded.
func TestReload(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	changedTo := map[string]string{
		"duration": "7m", "int": "7", "quantity": "777Mi", "list": "/a,/b", "bool": "true",
		"containerLog.driver": "memory", "containerLog.rateLimit": "7 lines/s",
		"engine.runtime": "crun", "engine.cgroupDriver": "systemd", "network.mode": "none", "network.subnets": "10.99.0.0/22",
		"policy.podSecurity": "baseline", "policy.requests": "ignore", "images.verifyDefault": "reject", "policy.allowedUnsafeSysctls": "net.core.*", "policy.systemReserved": "cpu=1",
		"images.gcHighPercent": "90",
	}
	for _, s := range Settings() {
		old, err := Load(Sources{File: "/dev/null", Env: none, Flag: none})
		if err != nil {
			t.Fatal(err)
		}
		text, set := changedTo[s.Key]
		if !set {
			text, set = changedTo[s.Kind()]
		}
		if !set {
			text = "/changed/" + s.Flag
		}
		next, err := Load(Sources{File: "/dev/null", Env: none, Flag: func(name string) (string, bool) { return text, name == s.Flag }})
		if err != nil {
			t.Fatal(err)
		}
		before := *old
		merged, changed, restart := old.Reload(next)
		applied := equal(s.field(merged), s.field(next))
		if applied != s.Reloads || slices.Contains(changed, s.Key) != s.Reloads || slices.Contains(restart, s.Key) == s.Reloads || !equal(s.field(old), s.field(&before)) {
			t.Errorf("%s: applied %t, changed %v, needs a restart %v", s.Key, applied, changed, restart)
		}
		if page := configurationPage(t); strings.Contains(page, "| `"+s.Key+"` | "+s.Kind()+" | "+defaultOf(&s)+" | yes |") != s.Reloads {
			t.Errorf("%s: the reference does not say whether it reloads", s.Key)
		}
		if _, again, _ := merged.Reload(next); len(again) > 0 {
			t.Errorf("%s: %v changes again", s.Key, again)
		}
	}
}
