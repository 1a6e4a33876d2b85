package podcgroup

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/cgroup"
)

func TestPaths(t *testing.T) {
	g, err := New(Cgroupfs, "/podstead", true)
	if err != nil {
		t.Fatal(err)
	}
	if g.OCIPath("u-1", "id") != "/podstead/u-1/id" ||
		g.Container("u-1", "id") != "/podstead/u-1/id" {
		t.Errorf("cgroupfs: %s, %s", g.OCIPath("u-1", "id"), g.Container("u-1", "id"))
	}
	if g, err = New(Systemd, "", true); err != nil {
		t.Fatal(err)
	}
	if g.OCIPath("u-1", "id") != "podstead-u_1.slice:podstead:id" ||
		g.Container("u-1", "id") != "/podstead.slice/podstead-u_1.slice/podstead-id.scope" {
		t.Errorf("systemd: %s, %s", g.OCIPath("u-1", "id"), g.Container("u-1", "id"))
	}
	if _, err := New("none", "", true); err == nil {
		t.Error("an unknown driver was accepted")
	}
}

func TestSliceLimits(t *testing.T) {
	const accounting = "CPUAccounting=true MemoryAccounting=true TasksAccounting=true "
	for _, test := range []struct {
		limits  cgroup.Limits
		unified bool
		want    string
	}{
		{
			cgroup.Limits{Shares: 1024, Quota: 50_000, Memory: 4096, Pids: 9},
			true,
			"CPUQuotaPerSecUSec=@t 500000 TasksMax=@t 9 CPUWeight=@t 39 MemoryMax=@t 4096",
		},
		{
			cgroup.Limits{Shares: 1024, Quota: 50_000, Memory: 4096, Pids: 9},
			false,
			"CPUQuotaPerSecUSec=@t 500000 TasksMax=@t 9 CPUShares=@t 1024 MemoryLimit=@t 4096",
		},
		{
			cgroup.Limits{Quota: 1001},
			false,
			"CPUQuotaPerSecUSec=@t 20000 TasksMax=@t 18446744073709551615 CPUShares=@t 2 MemoryLimit=@t 18446744073709551615",
		},
		{
			cgroup.Limits{},
			true,
			"CPUQuotaPerSecUSec=@t 18446744073709551615 TasksMax=@t 18446744073709551615 CPUWeight=@t 1 MemoryMax=@t 18446744073709551615",
		},
	} {
		var got []string
		for _, p := range sliceLimits(test.limits, test.unified) {
			got = append(got, p.Name+"="+p.Value.String())
		}
		if diff := cmp.Diff(accounting+test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.limits, diff)
		}
	}
}

// The scope of the monitor and its slice have the same protection, which exists with cgroup v2 only.
func TestProtection(t *testing.T) {
	if got := protection(false); got != nil {
		t.Errorf("cgroup v1: %v", got)
	}
	if got := protection(true); len(got) != 1 || got[0].Name != "MemoryMin" || got[0].Value.Value() != uint64(MonitorMemory) {
		t.Errorf("cgroup v2: %v", got)
	}
	text, err := os.ReadFile("../../../packaging/podstead.slice")
	if want := fmt.Sprintf("\nMemoryMin=%dM\n", MonitorMemory>>20); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("podstead.slice: %v; want %q in\n%s", err, want, text)
	}
}

// A monitor in the scope of any keeper is not moved, and one in the cgroup of the daemon is.
func TestInMonitorScope(t *testing.T) {
	for text, want := range map[string]bool{
		"0::/podstead.slice/podstead-monitor-4100.scope\n":                               true,
		"1:name=systemd:/podstead.slice/podstead-monitor-4100.scope\n0::/system.slice\n": true,
		"0::/system.slice/podstead.service\n":                                            false,
		"0::/podstead.slice/podstead-shim-u-1.scope\n":                                   false,
		"0::/user.slice/podstead-monitor-4100.scope\n":                                   false,
		"": false,
	} {
		if got := inMonitorScope(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
