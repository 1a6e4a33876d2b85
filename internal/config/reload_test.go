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
		"containerLog.driver": "memory", "events.journald": "never", "containerLog.rateLimit": "7 lines/s",
		"engine.runtime": "crun", "engine.cgroupDriver": "systemd", "network.mode": "none", "network.subnets": "10.99.0.0/22",
		"policy.podSecurity": "baseline", "policy.requests": "ignore", "images.verifyDefault": "reject",
		"policy.allowedUnsafeSysctls": "net.core.*", "policy.systemReserved": "cpu=1",
		"images.gcHighPercent": "90",
	}
	changedTo["metrics.address"] = "127.0.0.1:9470"
	// Settings that are valid only with others.
	with := map[string]map[string]string{
		"metrics.certFile": {"metrics-address": "127.0.0.1:9469", "metrics-cert-file": "/cert.pem", "metrics-key-file": "/key.pem"},
	}
	with["metrics.keyFile"] = with["metrics.certFile"]
	for _, s := range Settings() {
		others := func(name string) (string, bool) {
			text, ok := with[s.Key][name]
			return text, ok
		}
		old, err := Load(Sources{File: "/dev/null", Env: none, Flag: others})
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
		next, err := Load(Sources{File: "/dev/null", Env: none, Flag: func(name string) (string, bool) {
			if name == s.Flag {
				return text, true
			}
			return others(name)
		}})
		if err != nil {
			t.Fatal(err)
		}
		before := *old
		merged, changed, restart := old.Reload(next)
		applied := equal(s.field(merged), s.field(next))
		if applied != s.Reloads || slices.Contains(changed, s.Key) != s.Reloads || slices.Contains(restart, s.Key) == s.Reloads ||
			!equal(s.field(old), s.field(&before)) {
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
