//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const uid = "0c5e4b1e-1111-4000-8000-000000000001"

var logPrefix = regexp.MustCompile(`(?m)^\S+ \S+ [FP] `)

func TestProcessInside(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{Name: "web"})
	t.Run("environment, arguments, working directory", func(t *testing.T) {
		c := sh(`env | sort; pwd; echo "$@"`)
		c.Command = append(c.Command, "sh")
		c.Args = []string{"$(B)", "$$(B)", "$(NONE)"}
		c.WorkingDir = "/created/dir"
		c.Env = []spec.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2"}, {Name: "HOME", Value: "/h"}}
		wantLines(t, p.output(c), "A=1", "B=12", "HOME=/h", "HOSTNAME=web", "PATH=/bin", "PWD=/created/dir", "SHLVL=1",
			"/created/dir", "12 $(B) $(NONE)")
	})
	t.Run("privileges", func(t *testing.T) {
		wantLines(t, p.output(sh(`grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp|Groups):' /proc/self/status | tr -d '\t'
			id -u; cat /proc/self/oom_score_adj`)),
			"Groups:0 ", "CapInh:0000000000000000", "CapPrm:00000000a80425fb", "CapEff:00000000a80425fb",
			"CapBnd:00000000a80425fb", "CapAmb:0000000000000000", "NoNewPrivs:0", "Seccomp:2", "0", "1000")
	})
	t.Run("no inherited file descriptor", func(t *testing.T) {
		wantLines(t, p.output(sh(`ls /proc/self/fd`)), "0", "1", "2", "3") // 3 is the directory
	})
	t.Run("cgroup", func(t *testing.T) {
		out := p.output(sh(`cat /proc/self/cgroup`))
		parent := p.cgroup(uid) + "/"
		for line := range strings.Lines(out) {
			if strings.Contains(line, ":memory:") || strings.Contains(line, ":pids:") ||
				strings.HasPrefix(line, "0::/") && len(out) == len(line) {
				if !strings.Contains(line, parent) && !strings.HasPrefix(line, "0::/\n") {
					t.Errorf("cgroup %q is not below %s", line, parent)
				}
			}
		}
	})
	t.Run("mounts", func(t *testing.T) {
		out := p.output(sh(`exec 2>/dev/null; echo x > /sys/x && echo /sys is writable; echo 1 > /proc/sys/kernel/panic && echo /proc/sys is writable
			head -c 1 /proc/kcore 2>/dev/null | wc -c; ls /proc/acpi 2>/dev/null | wc -l; stat -c %a /dev/shm /tmp`))
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := lines[len(lines)-4:]; !slices.Equal(got, []string{"0", "0", "1777", "1777"}) || strings.Contains(out, "is writable") {
			t.Errorf("output:\n%s", out)
		}
	})
}

func TestImageInside(t *testing.T) {
	m := newTestHost(t)
	m.pull(m.archive("testserver"), testserver)
	p := newPod(m, &spec.Pod{Name: "web"})
	ref, err := p.start(spec.Container{Image: testserver, Env: []spec.EnvVar{{Name: "PORT", Value: "80"}}})
	if err != nil {
		t.Fatal(err)
	}
	// A user other than root can listen on port 80. The server exits on SIGINT, the stop signal of the image.
	m.eventually("the server to listen", func() (string, bool) {
		log := p.log(ref)
		return log, strings.Contains(log, ":80")
	})
	pid := m.pidOf(ref)
	status := m.proc(pid, "status")
	if !regexp.MustCompile(`(?m)^Uid:\t65534\t`).MatchString(status) || !strings.Contains(status, "CapEff:\t0000000000000000") {
		t.Errorf("the process does not run as the user of the image:\n%s", status)
	}
	if got := m.proc(pid, "cmdline"); got != "/bin/testserver\x00-dir\x00/srv\x00" {
		t.Errorf("command line: %q", got)
	}
	if got, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); !strings.HasSuffix(got, "/srv") {
		t.Errorf("working directory: %s", got)
	}
	env := m.proc(pid, "environ")
	for _, want := range []string{"GREETING=from the image\x00", "PORT=80\x00", "HOSTNAME=web\x00"} {
		if !strings.Contains(env, want) {
			t.Errorf("environment %q lacks %q", env, want)
		}
	}
	if err := m.StopContainer(m.ctx(), uid, p.Pod, ref); err != nil {
		t.Fatal(err)
	}
	if exit, _, err := m.WaitContainer(m.ctx(), uid, ref); err != nil || exit.Code != 0 {
		t.Errorf("exit after the stop signal: %+v, %v", exit, err)
	}
}

func (m *testHost) proc(pid int, file string) string {
	m.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		m.Fatal(err)
	}
	return string(text)
}

// pidOf returns the PID of the first process of a container, with any cgroup version and driver. It is the oldest process, because PIDs are
// reused.
func (m *testHost) pidOf(ref lifecycle.Ref) int {
	m.Helper()
	path, first, oldest := m.cgroupOf(ref), 0, uint64(math.MaxUint64)
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		m.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have exited
		if !strings.Contains(string(text), path) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, after, _ := strings.Cut(string(stat), ") ") // process names of the test images do not contain ") "
		fields := strings.Fields(after)
		const start = 22 - 3 // proc(5): field 22, without the first two
		if len(fields) <= start {
			continue
		}
		at, err1 := strconv.ParseUint(fields[start], 10, 64)
		pid, err2 := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err1 == nil && err2 == nil && (at < oldest || at == oldest && pid < first) {
			first, oldest = pid, at
		}
	}
	if first == 0 {
		m.Fatalf("container %s has no process", ref.Container)
	}
	return first
}

func (m *testHost) idOf(ref lifecycle.Ref) string {
	m.Helper()
	found, err := m.Inventory(m.ctx())
	if err != nil {
		m.Fatal(err)
	}
	for _, f := range found {
		for _, r := range f.Runs {
			if f.UID == uid && r.Ref == ref {
				return r.ID
			}
		}
	}
	m.Fatalf("no run %+v in %+v", ref, found)
	return ""
}

// TestNamespaces tests which namespaces belong to the pod, the container and the host.
//
// fields: hostNetwork
func TestNamespaces(t *testing.T) {
	const look = `for n in net ipc uts pid mnt; do readlink /proc/self/ns/$n; done`
	own := func(names ...string) map[string]string {
		all := map[string]string{}
		for _, n := range names {
			all[n], _ = os.Readlink("/proc/self/ns/" + n)
		}
		return all
	}
	host := own("net", "ipc", "uts", "pid", "mnt")
	m := newTestHost(t)

	p := newPod(m, &spec.Pod{Name: "own"})
	one := strings.Fields(p.output(sh(look)))
	two := strings.Fields(p.output(sh(look)))
	for i, name := range []string{"net", "ipc", "uts"} {
		if one[i] != two[i] || one[i] == host[name] {
			t.Errorf("%s namespace: %s and %s, that of the host is %s", name, one[i], two[i], host[name])
		}
	}
	for i, name := range []string{"pid", "mnt"} {
		if i += 3; one[i] == host[name] || two[i] == host[name] {
			t.Errorf("%s namespace: %s and %s, want other than that of the host", name, one[i], two[i])
		}
	}
	wantLines(t, p.output(sh(`hostname; cat /etc/hostname; ls /sys/class/net; cat /sys/class/net/lo/flags
		cat /proc/sys/net/ipv4/ip_unprivileged_port_start`)), "own", "own", "eth0", "lo", "0x9", "0")
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}

	p = newPod(m, &spec.Pod{Name: "host", HostNetwork: true})
	got := strings.Fields(p.output(sh(look)))
	if got[0] != host["net"] || got[2] != host["uts"] || got[1] == host["ipc"] {
		t.Errorf("namespaces of a hostNetwork pod: %v, those of the host are %v", got, host)
	}
	name, _ := os.Hostname()
	wantLines(t, p.output(sh(`hostname; echo $HOSTNAME; cat /etc/hostname; head -1 /etc/hosts`)), name, name, name,
		"# Kubernetes-managed hosts file (host network).")
}

func TestFiles(t *testing.T) {
	p := newPod(newTestHost(t), &spec.Pod{
		Name: "own", Hostname: "other",
		HostAliases: []spec.HostAlias{{IP: "10.1.2.3", Hostnames: []string{"a", "b"}}},
		DNSPolicy:   spec.DNSNone,
		DNSConfig:   &spec.DNSConfig{Nameservers: []string{"10.0.0.1"}, Searches: []string{"example.org"}},
		Volumes:     []spec.Volume{{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}},
	})
	wantLines(t,
		p.output(sh(`cat /etc/resolv.conf; grep -c '[0-9a-f]	other$' /etc/hosts; tail -n 3 /etc/hosts; stat -c %a /etc/hosts; echo `+
			`10.9.9.9 mine >> /etc/hosts`)),
		"search example.org", "nameserver 10.0.0.1",
		"2", "", "# Entries added by HostAliases.", "10.1.2.3\ta\tb", "644")
	if out := p.output(sh(`cat /etc/hosts`)); strings.Contains(out, "mine") {
		t.Errorf("/etc/hosts was not rewritten:\n%s", out)
	}

	mount := func(path string, readOnly bool) []spec.VolumeMount {
		return []spec.VolumeMount{{Name: "data", MountPath: path, ReadOnly: readOnly}}
	}
	c := sh(`echo kept > /data/f; echo shared > /dev/shm/f; stat -c %a /data; df -k /dev/shm | awk 'NR == 2 { print $2 }'`)
	c.VolumeMounts = mount("/data", false)
	wantLines(t, p.output(c), "777", "65536")
	c = sh(`cat /mnt/deep/f /dev/shm/f; touch /mnt/deep/g 2>&1`)
	c.Command[2] += ` | sed 's/.*: //'`
	c.VolumeMounts = mount("/mnt/deep", true)
	wantLines(t, p.output(c), "kept", "shared", "Read-only file system")
}

// TestHostPath tests the types of hostPath volumes.
//
// fields: volumes[].hostPath.{path,type}
func TestHostPath(t *testing.T) {
	m := newTestHost(t)
	dir := filepath.Join(m.dir, "host")
	if err := os.MkdirAll(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	p := newPod(m, &spec.Pod{})
	for _, test := range []struct {
		path    string
		kind    spec.HostPathType
		refused string // part of the failure message; empty if the container runs
		sees    string
	}{
		{"created1/deep", spec.HostPathUnset, "", "directory"},
		{"file", spec.HostPathUnset, "", "regular file"},
		{"link", spec.HostPathFile, "", "regular file"},
		{"dir", spec.HostPathDirectory, "", "directory"},
		{"file", spec.HostPathDirectory, "is not a directory", ""},
		{"none", spec.HostPathDirectory, "does not exist", ""},
		{"created2/deep", spec.HostPathDirectoryOrCreate, "", "directory"},
		{"file", spec.HostPathDirectoryOrCreate, "is not a directory", ""},
		{"file", spec.HostPathFile, "", "regular file"},
		{"dir", spec.HostPathFile, "is not a file", ""},
		{"created-file", spec.HostPathFileOrCreate, "", "regular empty file"},
		{"none/file", spec.HostPathFileOrCreate, "no such file or directory", ""},
		{"socket", spec.HostPathSocket, "", "socket"},
		{"file", spec.HostPathSocket, "is not a socket", ""},
		{"/dev/null", spec.HostPathCharDevice, "", "character special file"},
		{"/dev/null", spec.HostPathBlockDevice, "is not a block device", ""},
	} {
		path := test.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		p.Volumes = []spec.Volume{{Name: "v", HostPath: &spec.HostPathVolume{Path: path, Type: test.kind}}}
		c := sh("stat -c %F /v")
		c.VolumeMounts = []spec.VolumeMount{{Name: "v", MountPath: "/v"}}
		p.Containers = []spec.Container{c}
		_, err := m.StartSandbox(m.ctx(), uid, p.Pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1})
		if test.refused == "" {
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(p.output(c)); got != test.sees {
				t.Errorf("hostPath %s of type %q: the container sees %q, want %q", test.path, test.kind, got, test.sees)
			}
			continue
		}
		f, _ := errors.AsType[lifecycle.Failure](err)
		if f.Kind != lifecycle.FailureRetry || f.Reason != lifecycle.ReasonFailedMount || !strings.Contains(f.Message, test.refused) {
			t.Errorf("hostPath %s of type %q: %#v, want FailedMount with %q", test.path, test.kind, err, test.refused)
		}
	}
}
