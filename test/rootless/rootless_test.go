//go:build e2e

package rootless_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/forwarder"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/test/transcript"
)

// web is a pod with a volume and probes of two kinds. It takes the path of an image archive.
const web = `name = "web"
imageArchives = [%q]
terminationGracePeriodSeconds = 1

[[volumes]]
name = "pages"
emptyDir = {}

[[containers]]
name = "httpd"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo hello >/pages/index.html; exec httpd -f -p 8080 -h /pages"]
volumeMounts = [{ name = "pages", mountPath = "/pages" }]
readinessProbe = { httpGet = { port = 8080, path = "/index.html" }, periodSeconds = 1 }
livenessProbe = { exec = { command = ["cat", "/pages/index.html"] }, periodSeconds = 60, timeoutSeconds = 60 }
`

// httpd is in the command line of the container of web, and of no other process.
const httpd = "httpd -f -p 8080"

// TestUser runs pods as an ordinary user: what runs, what survives when processes are killed, what is rejected, and what is left.
func TestUser(t *testing.T) {
	outside := newNetwork(t)
	newNameServer(t)
	p := newPerson(t)
	_, errs, err := p.try(t, "podstead", "image", "pull", net.JoinHostPort(outside, "81")+"/image:1")
	if err == nil || !strings.Contains(errs, "connection refused") {
		t.Errorf("a closed port of another host before there is a pod: %v, %s", err, errs)
	}
	hello := filepath.Join(p.dir, "examples/hello.toml")
	if out := p.run(t, "podstead", "run", hello); !strings.Contains(out, "Hello, world, from a pod.") {
		t.Errorf("run: %q", out)
	}
	p.apply(t)
	for _, dir := range []string{".local/share/podstead/engine", ".local/state/podstead", ".config/podstead/pods.d"} {
		if _, err := os.Stat(filepath.Join(p.dir, "home", dir)); err != nil {
			t.Error(err)
		}
	}
	t.Run("network", func(t *testing.T) { p.testNetwork(t, outside) })
	t.Run("killed", p.testKilled)
	t.Run("rejected", p.testRejected)
	t.Run("exec", func(t *testing.T) { // its processes are found without a cgroup
		const command = "sleep 7654 & sleep 7655"
		done := make(chan error, 1)
		go func() {
			_, _, err := p.try(t, "podstead", "exec", "web", "--", "sh", "-c", command)
			done <- err
		}()
		await(t, func() bool { return len(p.processes("sleep 7654")) == 2 && len(p.processes("sleep 7655")) > 0 }) // with the shell
		kill(t, p.one(t, "podstead exec"))
		if err := <-done; err == nil {
			t.Error("exec was not interrupted")
		}
		await(t, func() bool { return len(p.processes("sleep 765")) == 0 })
	})
	t.Run("files", p.testFiles)
	p.run(t, "podstead", "stop", "web")
	p.run(t, "podstead", "start", "web")
	p.run(t, "podstead", "wait", "--for=condition=Ready", "--timeout=3m", "pod/web")
	p.run(t, "podstead", "delete", "--force", "web")
	p.run(t, "podstead", "daemon", "stop")
	await(t, func() bool { return len(p.processes("")) == 0 }) // the holder and pasta, too
}

// testNetwork reaches a host outside, and not the loopback of the host.
func (p *person) testNetwork(t *testing.T, outside string) {
	get := func(timeout, address, port string) (stdout, stderr string, err error) {
		url := "http://" + net.JoinHostPort(address, port)
		return p.try(t, "podstead", "exec", "web", "--", "timeout", timeout, "wget", "-qO-", url)
	}
	if out, errs, err := get("60", outside, "80"); out != "outside" {
		t.Errorf("answer of another host: %q, %v, %s", out, err, errs)
	}
	if out, errs, err := get("60", outsideName, "80"); out != "outside" {
		t.Errorf("answer of another host by its name: %q, %v, %s", out, err, errs)
	}
	if _, errs, err := get("60", outside, "81"); err == nil || !strings.Contains(errs, "refused") {
		t.Errorf("a closed port of another host: %v, %s", err, errs)
	}
	_, errs, err := p.try(t, "podstead", "image", "pull", outsideName+"/image:1")
	if err == nil || !strings.Contains(errs, outsideAddress) {
		t.Errorf("the daemon does not resolve %s: %v, %s", outsideName, err, errs)
	}
	host, err := net.Listen("tcp", ":0") // on all addresses of the host
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	go func() { _ = http.Serve(host, http.NotFoundHandler()) }()
	_, port, err := net.SplitHostPort(host.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, errs, err = p.try(t, "podstead", "image", "pull", net.JoinHostPort("127.0.0.1", port)+"/image:1")
	if err == nil || !strings.Contains(errs, "connection refused") { // the server would respond with 404
		t.Errorf("the daemon reaches a server on the loopback of the host: %v, %s", err, errs)
	}
	gateway := p.run(t, "podstead", "exec", "web", "--", "sh", "-c", "ip route | sed -n 's/^default via \\([^ ]*\\).*/\\1/p'")
	if net.ParseIP(strings.TrimSpace(gateway)) == nil {
		t.Fatalf("gateway %q", gateway)
	}
	for _, address := range []string{"127.0.0.1", strings.TrimSpace(gateway), hostAddress} {
		out, errs, err := get("5", address, port)
		if err == nil || strings.Contains(out+errs, "404") {
			t.Errorf("a server on the loopback of the host answers at %s: %s%s", address, out, errs)
		}
	}
}

// testKilled kills the daemon, then also the process that holds the namespaces, and the container is the same one. If nothing is left that
// knows the namespaces, the container is killed and started again.
func (p *person) testKilled(t *testing.T) {
	const daemon, holder = "podstead daemon", "podstead-holder"
	before := p.one(t, httpd)
	for _, program := range []string{daemon, holder, "podstead-monitor"} {
		for _, pid := range p.processes(program) {
			name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			if err != nil || !strings.HasPrefix(string(name), "podstead") { // pkill, top and ps show and select by it
				t.Errorf("%s has the name %q, %v", program, name, err)
			}
		}
	}
	kill(t, p.one(t, daemon))
	p.run(t, "podstead", "get")
	kill(t, p.one(t, daemon), p.one(t, holder))
	if out := p.run(t, "podstead", "exec", "web", "--", "cat", "/pages/index.html"); out != "hello\n" {
		t.Errorf("exec: %q", out)
	}
	if after := p.one(t, httpd); after != before {
		t.Errorf("the container is process %d, was %d", after, before)
	}
	p.one(t, holder)
	kill(t, p.one(t, daemon), p.one(t, holder))
	await(t, func() bool { // keeper and monitor start each other
		for _, pid := range p.processes("podstead-monitor") {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(p.processes("podstead-monitor")) == 0
	})
	if after := p.one(t, httpd); after != before {
		t.Errorf("the container is process %d, was %d", after, before)
	}
	p.run(t, "podstead", "wait", "--for=condition=Ready", "--timeout=3m", "pod/web")
	await(t, func() bool { // the pod was ready before its loss was found
		found := p.processes(httpd)
		return len(found) == 1 && found[0] != before
	})
	p.run(t, "podstead", "wait", "--for=condition=Ready", "--timeout=3m", "pod/web")
	// It was killed in a namespace whose exit codes are not known here.
	if events := p.run(t, "podstead", "events", "web"); strings.Contains(events, "exited with code 0") ||
		!strings.Contains(events, "exited with code") {
		t.Errorf("the exit of a container that was killed:\n%s", events)
	}
}

// testFiles tests who owns files of volumes outside: root of a container is the user, and other users have IDs of /etc/subuid.
func (p *person) testFiles(t *testing.T) {
	dir := filepath.Join(p.dir, "home/shared")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, p.uid, p.gid)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.dir, "files.toml")
	text := fmt.Sprintf(`name = "files"
restartPolicy = "Never"
imageArchives = [%q]
volumes.shared = { hostPath = { path = %q } }
containers = [{ name = "c", image = "localhost/podstead/busybox:1", command = ["sh", "-c", "touch /s/a /s/b && chown 7:7 /s/b"], `+
		`volumeMounts = [{ name = "shared", mountPath = "/s" }] }]
`, filepath.Join(p.dir, "examples/images/busybox.tar"), dir)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "run", file)
	for name, want := range map[string]int{"a": p.uid, "b": p.subIDs[0] + 6} {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, name), &st); err != nil || int(st.Uid) != want {
			t.Errorf("the owner of %s is %d, %v, want %d", name, st.Uid, err, want)
		}
	}
}

// TestPasta tests that pasta that could not be started, or was killed, is started by the next command.
func TestPasta(t *testing.T) {
	outside := newNetwork(t)
	p := newPerson(t)
	doctor := func(want string) {
		t.Helper()
		if out, errs, _ := p.try(t, "podstead", "doctor"); !strings.Contains(out, want) { // the test has its own reasons to fail
			t.Errorf("doctor does not report %q:\n%s%s", want, out, errs)
		}
	}
	failing := filepath.Join(p.dir, "bin/pasta")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\necho no route >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.apply(t)
	doctor("no route")
	if err := os.Remove(failing); err != nil {
		t.Fatal(err)
	}
	reached := func() bool {
		out, _, _ := p.try(t, "podstead", "exec", "web", "--", "timeout", "60", "wget", "-qO-", "http://"+outside)
		return out == "outside"
	}
	await(t, reached) // it is not tried with each command
	if out := p.run(t, "podstead", "exec", "web", "--", "cat", "/sys/class/net/eth0/mtu"); out != "65520\n" {
		t.Errorf("MTU of the pod: %q, want 65520 as pasta has", out)
	}
	kill(t, p.one(t, "--dns-forward"))
	await(t, reached)
	doctor("pasta runs, PID ")
	p.run(t, "podstead", "daemon", "stop", "--pods")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// apply starts the pod of web and waits until it is ready.
func (p *person) apply(t *testing.T) {
	t.Helper()
	file := filepath.Join(p.dir, "web.toml")
	text := fmt.Sprintf(web, filepath.Join(p.dir, "examples/images/busybox.tar"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "apply", "--wait", "--timeout", "3m", file)
}

// TestLogout removes the runtime directory as systemd-logind does after the logout, and mounts another one as it does after the login. The
// mount namespace of the pods receives both. There is never a second container of a pod.
func TestLogout(t *testing.T) {
	newNetwork(t)
	p := newPerson(t)
	if err := errors.Join(unix.Mount(p.dir, p.dir, "", unix.MS_BIND, ""), unix.Mount("", p.dir, "", unix.MS_SHARED, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(p.runDir(), unix.MNT_DETACH), unix.Unmount(p.dir, unix.MNT_DETACH)); err != nil {
			t.Error(err)
		}
	})
	mount := func() {
		t.Helper()
		options := fmt.Sprintf("mode=0700,uid=%d,gid=%d", p.uid, p.gid)
		if err := unix.Mount("tmpfs", p.runDir(), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			t.Fatal(err)
		}
	}
	mount()
	p.apply(t)
	for name, lose := range map[string]func(){
		"removed": func() { command(t, "sh", "-c", `rm -rf "$0"/*`, p.runDir()) },
		"mounted again": func() {
			command(t, "sh", "-c", `rm -rf "$0"/*`, p.runDir())
			if err := unix.Unmount(p.runDir(), unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			mount()
		},
	} {
		before := p.one(t, httpd)
		lose()
		if after := p.one(t, httpd); after != before {
			t.Errorf("%s: the container is process %d, was %d", name, after, before)
		}
		p.run(t, "podstead", "get")
		await(t, func() bool {
			found := p.processes(httpd)
			if len(found) > 1 {
				t.Fatalf("%s: two containers: processes %v", name, found)
			}
			return len(found) == 1 && found[0] != before
		})
		p.run(t, "podstead", "wait", "--for=condition=Ready", "--timeout=3m", "pod/web")
		p.one(t, "podstead-holder")
		p.one(t, "podstead daemon")
	}
	before := p.one(t, httpd)
	other := filepath.Join(p.dir, "other")
	if err := errors.Join(os.Mkdir(other, 0o700), os.Chown(other, p.uid, p.gid)); err != nil {
		t.Fatal(err)
	}
	first := p.env
	p.env = append(slices.Clone(first), "XDG_RUNTIME_DIR="+other)
	_, errs, err := p.try(t, "podstead", "get")
	if err == nil || !strings.Contains(errs, p.runDir()) || !strings.Contains(errs, "hint: set XDG_RUNTIME_DIR") {
		t.Errorf("another runtime directory: %v, %s", err, errs)
	}
	p.env = first
	if after := p.one(t, httpd); after != before {
		t.Errorf("the container is process %d, was %d", after, before)
	}
	p.run(t, "podstead", "daemon", "stop", "--pods")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// testRejected requests what needs root.
func (p *person) testRejected(t *testing.T) {
	for field, line := range map[string]string{
		"hostNetwork":                              "hostNetwork = true",
		"hostPID":                                  "hostPID = true",
		"hostIPC":                                  "hostIPC = true",
		"shareProcessNamespace":                    "shareProcessNamespace = true",
		"hostUsers":                                "hostUsers = false",
		"containers[0].ports[0].hostPort":          "CONTAINER, ports = [{ containerPort = 80, hostPort = 8080, protocol = 'SCTP' }] }]",
		"containers[0].resources.limits.memory":    "CONTAINER, resources = { limits = { memory = '64Mi' } } }]",
		"containers[0].resources.limits.cpu":       "CONTAINER, resources = { limits = { cpu = 1 } } }]",
		"containers[0].securityContext.privileged": "CONTAINER, securityContext = { privileged = true } }]",
	} {
		if !strings.HasPrefix(line, "CONTAINER") {
			line += "\nCONTAINER }]"
		}
		line = strings.Replace(line, "CONTAINER", "containers = [{ name = 'c', image = 'i'", 1)
		file := filepath.Join(p.dir, "rejected.toml")
		if err := os.WriteFile(file, []byte("name = 'rejected'\n"+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, errs, err := p.try(t, "podstead", "run", file)
		has := func(text string) bool { return strings.Contains(errs, text) }
		if err == nil || !has(field+": ") || !has("without root") || !has("hint: ") {
			t.Errorf("%s: %v, %s", field, err, errs)
		}
	}
	_, errs, err := p.try(t, "podstead", "run", filepath.Join(p.dir, "examples/restricted.toml"))
	if err == nil || !strings.Contains(errs, "hostUsers: false: without root") || strings.Contains(errs, "chmod") {
		t.Errorf("an example with user namespaces: %v, %s", err, errs)
	}
	_, errs, err = p.try(t, "podstead", "debug", "web", "--target", "httpd", "--image", "localhost/podstead/busybox:1", "--", "true")
	if err == nil || !strings.Contains(errs, "targetContainerName: without root") {
		t.Errorf("debug --target: %v, %s", err, errs)
	}
}

// TestOtherUser tries to reach the daemon and the pods of a user as another one, who has a daemon too.
func TestOtherUser(t *testing.T) {
	p, attacker := newPerson(t), newPerson(t)
	p.apply(t)
	if out := attacker.run(t, "podstead", "get", "-o", "json"); strings.Contains(out, "httpd") {
		t.Errorf("pods of another user: %s", out)
	}
	socket := filepath.Join(p.runDir(), "podstead/podstead.sock")
	if _, errs, err := attacker.try(t, "podstead", "--socket", socket, "get"); err == nil || !strings.Contains(errs, "permission denied") {
		t.Errorf("socket of another user: %v, %s", err, errs)
	}
	state := filepath.Join(p.dir, "home/.local/share/podstead")
	container := strconv.Itoa(p.one(t, httpd))
	holder := strconv.Itoa(p.one(t, "podstead-holder"))
	for _, args := range [][]string{ // the owner can do all of it
		{"ls", p.runDir()},
		{"ls", filepath.Join(state, "engine")},
		{"ls", filepath.Join(state, "pods")},
		{"ls", state},
		{"ls", forwarder.Socket(filepath.Join(p.runDir(), "podstead"))},
		{"cat", filepath.Join(state, "namespaces.json")},
		{"nsenter", "--target", holder, "--user", "--preserve-credentials", "true"},
		{"nsenter", "--target", container, "--user", "--net", "--preserve-credentials", "true"},
		{"ls", "/proc/" + container + "/root/"},
		{"cat", "/proc/" + container + "/environ"},
		{"/bin/kill", "-0", container},
		{"/bin/kill", "-0", holder},
	} {
		p.run(t, args...)
		out, errs, err := attacker.try(t, args...)
		if err == nil || !strings.Contains(errs, "ermission denied") && !strings.Contains(errs, "ot permitted") {
			t.Errorf("%v: %v, %s%s", args, err, out, errs)
		}
	}
	ports := forwarder.NewClient(t.Context(), forwarder.Socket(filepath.Join(p.runDir(), "podstead")), "/proc/self/ns/net",
		slog.New(slog.DiscardHandler))
	defer ports.Close()
	if err := ports.Check(t.Context(), forwarder.Port{Protocol: forwarder.TCP, Port: 18080}); !errors.Is(err, forwarder.ErrUnavailable) {
		t.Errorf("the forwarder accepts root of the host, who is another user: %v", err)
	}
	if got := strconv.Itoa(p.one(t, httpd)); got != container {
		t.Errorf("the container is process %s, was %s", got, container)
	}
	for _, one := range []*person{p, attacker} {
		one.run(t, "podstead", "daemon", "stop", "--pods")
		await(t, func() bool { return len(one.processes("")) == 0 })
	}
}

// TestPage runs the commands of the page for users without root, and compares their output with the page.
func TestPage(t *testing.T) {
	p := testPage(t, readPage(t, "docs/howto/run-pods-without-root.md"), 5)
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// TestReadme does the same with the first commands of the README.
func TestReadme(t *testing.T) {
	_, after, _ := strings.Cut(readPage(t, "README.md"), "\n## A first pod\n")
	block, _, _ := strings.Cut(after, "\n`hello.toml`:\n")
	p := testPage(t, block, 2)
	p.run(t, "podstead", "daemon", "stop", "--pods")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testPage runs the commands of a page, which has a number of them at least, as a user in a directory with examples and programs.
func testPage(t *testing.T, page string, least int) *person {
	t.Helper()
	newNetwork(t)
	hideSystem(t)
	p := newPerson(t)
	steps, err := transcript.Parse(page, "podstead")
	if err != nil || len(steps) < least {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	work := filepath.Join(p.dir, "work")
	if err := errors.Join(os.Mkdir(work, 0o755), os.Chown(work, p.uid, p.gid),
		os.Symlink(filepath.Join(p.dir, "bin"), filepath.Join(work, "bin")),
		os.Symlink(filepath.Join(p.dir, "examples"), filepath.Join(work, "examples"))); err != nil {
		t.Fatal(err)
	}
	shell := &transcript.Shell{
		Dir: work, Env: p.env, Timeout: limit, Credential: p.credential(),
		Replace: strings.NewReplacer(work, "/home/ada", filepath.Join(p.dir, "home"), "/home/ada", p.runDir(), "/run/user/1000",
			p.name, "ada", strconv.Itoa(p.uid), "1000"),
	}
	for i := range steps {
		if err := shell.Run(t.Context(), &steps[i]); err != nil {
			t.Errorf("line %d: %s: %v", steps[i].Line, steps[i].Command, err)
		}
	}
	return p
}

// hideSystem hides the runtime directory of the system's daemon, which root may have run on this host: commands would print a note about
// it.
func hideSystem(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/etc/podstead"); err == nil {
		t.Fatal("the host has a daemon of the system: /etc/podstead exists")
	}
	if _, err := os.Stat("/run/podstead"); err != nil {
		return
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/run", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// await waits until a condition is met.
func await(t *testing.T, met func() bool) {
	t.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.NewTimer(limit)
	defer tick.Stop()
	defer late.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("the condition is not met")
		}
	}
}

// Addresses of the host of the users and of another host.
const hostAddress, outsideAddress = "198.51.100.1", "198.51.100.2"

// newNetwork is newHost for tests that need the address of the other host only.
func newNetwork(t *testing.T) string {
	t.Helper()
	newHost(t)
	return outsideAddress
}

// newHost connects the network namespace of this test, which is that of the host of its users, with another host, and gives pasta a
// device that users can open. It returns the network namespace of the other host, on which a server answers "outside".
func newHost(t *testing.T) network.Namespace {
	t.Helper()
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tun := filepath.Join(dir, "tun")
	if err := errors.Join(unix.Mknod(tun, unix.S_IFCHR, int(unix.Mkdev(10, 200))), os.Chmod(tun, 0o666),
		unix.Mount(tun, "/dev/net/tun", "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/dev/net/tun", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	pins, err := namespace.Pin(filepath.Join(dir, "outside"), namespace.Options{Network: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespace.Unpin(filepath.Join(dir, "outside")); err != nil {
			t.Error(err)
		}
	})
	other, err := os.Open(pins.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "up0"
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace = "up1", netlink.NsFd(int(other.Fd()))
	if err := errors.Join(netlink.LinkAdd(veth), setUp("up0", hostAddress),
		netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(outsideAddress)})); err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	started := make(chan error)
	go func() { // the thread ends with this goroutine
		runtime.LockOSThread()
		err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			if err = setUp("up1", outsideAddress); err == nil {
				listener, err = net.Listen("tcp", net.JoinHostPort(outsideAddress, "80"))
			}
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "outside") })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	outside, err := network.OpenNamespace(pins.Network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	return outside
}

// outsideName is the name of the host of [newNetwork], which [newNameServer] resolves.
const outsideName = "outside.test"

// newNameServer makes a name server on a loopback address that of the host, as systemd-resolved does.
func newNameServer(t *testing.T) {
	t.Helper()
	const address = "127.0.0.53"
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			if reply := answer(query[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from) // the client asks again
			}
		}
	}()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "resolv.conf")
	if err := errors.Join(os.WriteFile(file, []byte("nameserver "+address+"\n"), 0o644), os.Chmod(dir, 0o755),
		unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/etc/resolv.conf", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// answer returns the reply to a DNS query: the address of the other host, if its IPv4 address is asked for. It is nil if the query is none.
func answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: m.RecursionDesired, RecursionAvailable: true},
		Questions: m.Questions,
	}
	switch {
	case q.Name.String() != outsideName+".":
		reply.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		reply.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(outsideAddress).To4())},
		}}
	}
	text, err := reply.Pack()
	if err != nil {
		return nil
	}
	return text
}

// setUp sets a link up and gives it an address, in the network namespace of the calling thread.
func setUp(name, address string) error {
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	ip := &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(24, 32)}
	return errors.Join(h.AddrAdd(link, &netlink.Addr{IPNet: ip}), h.LinkSetUp(link))
}
