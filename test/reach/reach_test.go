package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestReached checks what the real packages of suites are.
func TestReached(t *testing.T) {
	t.Chdir("../..")
	for _, test := range []struct {
		suite, changed string
		affected       bool
	}{
		{"mutate", "supervisor/lifecycle/facts.go", true},
		{"mutate", "supervisor/lifecycle/facts_test.go", true},
		{"mutate", "spec/pod.go", true},
		{"mutate", "spec/decode_test.go", false},
		{"mutate", "runtime/runtime.go", false},
		{"mutate", "docs/mutants.md", true},
		{"crun", "runtime/container/container.go", true},
		{"crun", "runtime/container/container_test.go", false},
		{"crun", "test/hostile/doc.go", true},
		{"crun", "README.md", false},
		{"crun", "test/images/testserver/main.go", true},
		{"packages", "README.md", true},
		{"packages", "tools/go.mod", true},
		{"packages", "docs/testing.md", false},
		{"vm", "test/internal/installed/host.go", true},
		{"vm", "supervisor/loop.go", true},
		{"vm-runtime", "supervisor/loop.go", false},
		{"vm-runtime", "supervisor/lifecycle/facts.go", true},
		{"vm-runtime", "runtime/network/bridge.go", true},
		{"vm-runtime", "runtime/resize_e2e_test.go", true},
		{"vm-runtime", "runtime/monitor/main.go", true},
		{"vm-devices", "runtime/container/device.go", true},
		{"vm-devices", "supervisor/device.go", true},
		{"vm-devices", "cmd/podstead/main.go", false},
		{"vm-devices", "test/vm/devices_test.go", true},
		{"packages", "packaging/build", true},
		{"packages", "cmd/podstead/main.go", true},
		{"packages", "cmd/podstead/testdata/script/get.txtar", false},
		{"mutate", "go.mod", true},
	} {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == test.suite })
		r, err := suites[i].reached(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, reason := suites[i].affectedBy([]string{"none.go", test.changed}, r); got != test.affected {
			t.Errorf("%s after a change of %s: affected %v (%s)", test.suite, test.changed, got, reason)
		}
	}
}

func TestUnknownBase(t *testing.T) {
	t.Chdir("../..")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"0123456789abcdef0123456789abcdef01234567"}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), " yes commit "); got != len(suites) {
		t.Errorf("%d of %d suites:\n%s", got, len(suites), out.String())
	}
}
