package podcgroup

import (
	"strings"
	"testing"
)

// TestNames: the names of cgroups are those of pods and containers only if both drivers would give them.
func TestNames(t *testing.T) {
	const uid = "61094fd3-44b0-4214-b0b2-7a51721841c9"
	id := strings.Repeat("0a", 32)
	cgroupfs, systemd := Groups{root: "/podstead"}, Groups{systemd: true}
	for _, test := range []struct {
		groups         Groups
		name           string
		pod, container string
	}{
		{cgroupfs, uid, uid, ""},
		{cgroupfs, id, "", id},
		{cgroupfs, uid + "-shim", "", ""},
		{cgroupfs, id[1:], "", ""},
		{cgroupfs, "stray", "", ""},
		{systemd, slice(uid), uid, ""},
		{systemd, "podstead-" + id + ".scope", "", id},
		{systemd, "podstead-shim-" + strings.ReplaceAll(uid, "-", "_") + "-1.scope", "", ""},
		{systemd, uid, "", ""},
		{systemd, id, "", ""},
	} {
		pod, container := test.groups.podUID(test.name), test.groups.containerID(test.name)
		if pod != test.pod || container != test.container {
			t.Errorf("%s: pod %q, container %q, want %q and %q", test.name, pod, container, test.pod, test.container)
		}
	}
}

// TestCleared: at most five processes and cgroups are named.
func TestCleared(t *testing.T) {
	for want, c := range map[string]Cleared{
		"":                                 {},
		"processes sh (PID 1)":             {Processes: []string{"sh (PID 1)"}},
		"processes a, b, cgroups x":        {Processes: []string{"a", "b"}, Cgroups: []string{"x"}},
		"cgroups 1, 2, 3, 4, 5":            {Cgroups: []string{"1", "2", "3", "4", "5"}},
		"cgroups 1, 2, 3, 4, 5 and 2 more": {Cgroups: []string{"1", "2", "3", "4", "5", "6", "7"}},
	} {
		if got := c.String(); got != want || c.Any() != (want != "") {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// TestNamesPod: a process is in a pod if one of its cgroups is that of a pod, or below. Shims are not.
func TestNamesPod(t *testing.T) {
	const uid = "61094fd3-44b0-4214-b0b2-7a51721841c9"
	cgroupfs, systemd := Groups{root: "/podstead"}, Groups{systemd: true}
	for _, test := range []struct {
		groups Groups
		text   string
		want   bool
	}{
		{cgroupfs, "0::/podstead/" + uid + "\n", true},
		{cgroupfs, "9:pids:/\n4:memory:/podstead/" + uid + "/inner/deeper\n0::/\n", true},
		{cgroupfs, "0::/podstead/" + uid + "-shim\n", false},
		{cgroupfs, "0::/user/podstead/" + uid + "\n", false},
		{cgroupfs, "0::/podstead\n", false},
		{systemd, "0::/podstead.slice/" + slice(uid) + "/podstead-x.scope\n", true},
		{systemd, "0::/podstead.slice/podstead-shim-x-1.scope\n", false},
		{systemd, "", false},
	} {
		if got := test.groups.namesPod(test.text); got != test.want {
			t.Errorf("%q: in a pod: %v, want %v", test.text, got, test.want)
		}
	}
}
