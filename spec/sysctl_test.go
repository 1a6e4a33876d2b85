package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSysctlNames(t *testing.T) {
	for _, test := range []struct{ written, name, path, namespace string }{
		{"kernel.shm_rmid_forced", "kernel.shm_rmid_forced", "kernel/shm_rmid_forced", "ipc"},
		{"kernel/shm_rmid_forced", "kernel.shm_rmid_forced", "kernel/shm_rmid_forced", "ipc"},
		{"kernel.sem", "kernel.sem", "kernel/sem", "ipc"},
		{"kernel.sem_next_id", "kernel.sem_next_id", "kernel/sem_next_id", ""},
		{"kernel.msgmax", "kernel.msgmax", "kernel/msgmax", "ipc"},
		{"fs.mqueue.msg_max", "fs.mqueue.msg_max", "fs/mqueue/msg_max", "ipc"},
		{"net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter", "net/ipv4/conf/eno2.100/rp_filter", "net"},
		{"net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter", "net/ipv4/conf/eno2.100/rp_filter", "net"},
		{"vm.swappiness", "vm.swappiness", "vm/swappiness", ""},
		{"network", "network", "network", ""},
		{"kernel.panic", "kernel.panic", "kernel/panic", ""},
	} {
		got := [...]string{SysctlName(test.written), SysctlPath(test.written), SysctlNamespace(test.written)}
		if want := [...]string{test.name, test.path, test.namespace}; got != want {
			t.Errorf("%s: %q, want %q", test.written, got, want)
		}
	}
}

func TestUnsafeSysctls(t *testing.T) {
	if got := (&Pod{}).UnsafeSysctls(); got != nil {
		t.Errorf("pod without sysctls: %q", got)
	}
	p := &Pod{SecurityContext: &PodSecurityContext{}}
	for _, name := range safeSysctls {
		p.SecurityContext.Sysctls = append(p.SecurityContext.Sysctls, Sysctl{Name: name}, Sysctl{Name: SysctlPath(name)})
	}
	if got := p.UnsafeSysctls(); got != nil {
		t.Errorf("pod with safe sysctls: %q", got)
	}
	p.SecurityContext.Sysctls = []Sysctl{
		{Name: "net/core/somaxconn"}, {Name: "net.ipv4.tcp_syncookies"}, {Name: "kernel.msgmax"}, {Name: "kernel.panic"},
	}
	want := []string{"net.core.somaxconn", "kernel.msgmax", "kernel.panic"}
	if diff := cmp.Diff(want, p.UnsafeSysctls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
