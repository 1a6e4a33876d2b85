package oci

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rules returns the names of the system calls in a profile.
func rules(p *specs.LinuxSeccomp) []string {
	var names []string
	for _, rule := range p.Syscalls {
		names = append(names, rule.Names...)
	}
	return names
}

func TestParseSeccomp(t *testing.T) {
	got, err := parseSeccomp([]byte(`{
		"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "architectures": ["SCMP_ARCH_X86_64"], "flags": ["SECCOMP_FILTER_FLAG_LOG"],
		"comment": "none of a runtime's", "syscalls": [
			{ "names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{ "index": 0, "value": 8, "op": "SCMP_CMP_EQ" }] }
		] }`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, DefaultErrnoRet: new(uint(38)), Architectures: []specs.Arch{specs.ArchX86_64},
		Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog},
		Syscalls: []specs.LinuxSyscall{{
			Names: []string{"personality"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Value: 8, Op: specs.OpEqualTo}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParseDockersSeccomp tests the conditions of Docker's format.
func TestParseDockersSeccomp(t *testing.T) {
	const form = `{ "defaultAction": "SCMP_ACT_ERRNO",
		"archMap": [{ "architecture": "SCMP_ARCH_NONE" }, { "architecture": %q, "subArchitectures": ["SCMP_ARCH_SUB"] }],
		"syscalls": [
			{ "name": "always", "action": "SCMP_ACT_ALLOW" },
			{ "names": ["capable"], "action": "SCMP_ACT_ALLOW", "includes": { "caps": ["CAP_KILL", "CAP_CHOWN"] } },
			{ "names": ["not-capable"], "action": "SCMP_ACT_ALLOW", "excludes": { "caps": ["CAP_KILL"] } },
			{ "names": ["here"], "action": "SCMP_ACT_ALLOW", "includes": { "arches": ["none", %q] } },
			{ "names": ["elsewhere"], "action": "SCMP_ACT_ALLOW", "includes": { "arches": ["none"] } },
			{ "names": ["not-here"], "action": "SCMP_ACT_ALLOW", "excludes": { "arches": [%[2]q] } },
			{ "names": ["new"], "action": "SCMP_ACT_ALLOW", "includes": { "minKernel": "2.6" } },
			{ "names": ["future"], "action": "SCMP_ACT_ALLOW", "includes": { "minKernel": "999.0" } },
			{ "names": ["not-future"], "action": "SCMP_ACT_ALLOW", "excludes": { "minKernel": "999.0" } },
			{ "names": ["old"], "action": "SCMP_ACT_ALLOW", "excludes": { "minKernel": "2.6" } }
		] }`
	text := fmt.Sprintf(form, nativeArch(), runtime.GOARCH)
	for _, test := range []struct {
		caps []string
		want string
	}{
		{nil, "always not-capable here new not-future"},
		{[]string{"CAP_KILL"}, "always here new not-future"},
		{[]string{"CAP_CHOWN", "CAP_KILL"}, "always capable here new not-future"},
	} {
		p, err := parseSeccomp([]byte(text), test.caps)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rules(p), " "); got != test.want {
			t.Errorf("with %v: %s, want %s", test.caps, got, test.want)
		}
		if diff := cmp.Diff([]specs.Arch{nativeArch(), "SCMP_ARCH_SUB"}, p.Architectures); diff != "" {
			t.Errorf("architectures (-want +got):\n%s", diff)
		}
	}
}

func TestParseSeccompErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "read JSON",
		`[]`:                                  "read JSON",
		`{"defaultAction": "allow"}`:          `defaultAction must be one of SCMP_ACT_*, got "allow"`,
		`{"defaultAction": 1}`:                "read JSON",
		`{"defaultAction": "SCMP_ACT_LOG"} x`: "read JSON",
		`{"defaultAction": "SCMP_ACT_LOG", ` +
			`"syscalls": [{}]}`: "syscalls[0]: names is required",
		`{"defaultAction": "SCMP_ACT_LOG", "syscalls": ` +
			`[{"names": ["a"]}]}`: `syscalls[0]: action must be`,
		`{"defaultAction": "SCMP_ACT_LOG", "architectures": ["a"], "archMap": ` +
			`[{"architecture": "b"}]}`: "together with archMap",
		`{"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"name": "a", "action": "SCMP_ACT_LOG", "includes": {"minKernel": ` +
			`"new"}}]}`: `minKernel must be a version`,
		`{"defaultAction": "SCMP_ACT_LOG", "syscalls": [{"name": "a", "action": "SCMP_ACT_LOG", "excludes": ` +
			`{"minKernel": "4"}}]}`: `minKernel must be a version`,
	} {
		if _, err := parseSeccomp([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
