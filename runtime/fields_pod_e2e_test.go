//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const namesFile = `
name = "web"
hostname = "edge"
subdomain = "shop"
hostAliases = [{ ip = "10.1.2.3", hostnames = ["db", "db.local"] }, { ip = "fd00::5", hostnames = ["six"] }]
dnsPolicy = "None"

[dnsConfig]
nameservers = ["10.0.0.1", "fd00::53"]
searches = ["example.org", "local"]
options = [{ name = "ndots", value = "2" }, { name = "edns0" }]

[[containers]]
name = "names"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	hostname; cat /etc/hostname; echo "$HOSTNAME"
	own=$(ip -4 -o addr show dev eth0 | awk '{ sub("/.*", "", $4); print $4 }')
	awk -v own="$own" '$1 == own { print $2, $3 }' /etc/hosts
	grep -E '^(10\.1|fd00)' /etc/hosts''']

[[containers]]
name = "dns"
image = "localhost/podstead/busybox:1"
command = ["cat", "/etc/resolv.conf"]
`

// TestFieldsNames tests host names, host aliases and DNS.
//
// fields: name, hostname, subdomain, hostAliases[].{ip,hostnames}
// fields: dnsPolicy, dnsConfig.{nameservers,searches}, dnsConfig.options[].{name,value}
func TestFieldsNames(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(namesFile))
	wantLines(t, p.run("names"), "edge", "edge", "edge", "edge.shop.default.svc.cluster.local edge",
		"10.1.2.3\tdb\tdb.local", "fd00::5\tsix")
	wantLines(t, p.run("dns"), "search example.org local", "nameserver 10.0.0.1", "nameserver fd00::53", "options ndots:2 edns0")
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}

	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	var servers []string
	for line := range strings.Lines(string(resolv)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			servers = append(servers, "nameserver "+words[1])
		}
	}
	p = newPod(m, m.parse(strings.NewReplacer("hostname = \"edge\"\n", "", `"None"`, `"Default"`, "nameservers =", "#").Replace(namesFile)))
	names, dns := p.run("names"), p.run("dns")
	if !strings.HasPrefix(names, "web\nweb\nweb\nweb.shop.default.svc.cluster.local web\n") {
		t.Errorf("without a hostname, want the name of the pod; the container sees\n%s", names)
	}
	for _, server := range servers[:min(len(servers), 3)] {
		if !strings.Contains(dns, server+"\n") {
			t.Errorf("with the policy Default, resolv.conf lacks %q of the host:\n%s", server, dns)
		}
	}
	if !strings.Contains(dns, "example.org local") || strings.Contains(dns, "10.0.0.1") {
		t.Errorf("with the policy Default, resolv.conf is\n%s", dns)
	}
}

// TestFieldsHostname tests the fields that choose the host name in the pod, and the failure of one that is too long.
//
// fields: hostnameOverride, setHostnameAsFQDN
func TestFieldsHostname(t *testing.T) {
	m := newTestHost(t)
	const full = "edge.shop.default.svc.cluster.local"
	p := newPod(m, m.parse("setHostnameAsFQDN = true\n"+namesFile))
	wantLines(t, p.run("names"), full, full, full, full+" edge", "10.1.2.3\tdb\tdb.local", "fd00::5\tsix")
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	p = newPod(m, m.parse("hostnameOverride = \"mail.example.org\"\n"+namesFile))
	wantLines(t, p.run("names"), "mail.example.org", "mail.example.org", "mail.example.org", "mail.example.org "+full,
		"10.1.2.3\tdb\tdb.local", "fd00::5\tsix")
	if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
		t.Fatal(err)
	}
	long := m.parse("setHostnameAsFQDN = true\n" + namesFile)
	long.Subdomain = strings.Repeat("s", 40)
	_, err := m.StartSandbox(m.ctx(), uid, long, lifecycle.StartSandbox{Sandbox: 1})
	if err == nil || !strings.Contains(err.Error(), "is too long (64 characters is the max, 71 characters requested)") {
		t.Errorf("start of a sandbox whose full name is too long: %v", err)
	}
}

const processFile = `
os.name = "linux"

[[containers]]
name = "entrypoint"
image = "localhost/podstead/testserver:1"
args = ["-no-such-flag"]

[[containers]]
name = "command"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", 'echo "$0 $@"; pwd']
args = ["zero", "$(A)", "$$(A)", "two words"]
workingDir = "/created/dir"
env.A = "1"

[[containers]]
name = "stopped"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "trap 'echo USR1; exit 0' USR1; trap 'echo TERM; exit 1' TERM; echo ready; while :; do sleep 0.05; done"]
lifecycle.stopSignal = "SIGUSR1"
`

// TestFieldsProcess tests the command, the working directory and the stop signal.
//
// fields: os.name, containers[].{name,image,command,args,workingDir}, containers[].lifecycle.stopSignal
func TestFieldsProcess(t *testing.T) {
	m := newTestHost(t)
	m.pull(m.archive("testserver"), testserver)
	p := newPod(m, m.parse(processFile))
	ref, err := p.begin("entrypoint")
	if err != nil {
		t.Fatal(err)
	}
	if exit, log := p.wait(ref), p.log(ref); exit.Code != 2 || !strings.Contains(log, "flag provided but not defined: -no-such-flag") {
		t.Errorf("the image's program with other arguments: exit %+v, output\n%s", exit, log)
	}
	wantLines(t, p.run("command"), "zero 1 $(A) two words", "/created/dir")
	stopped := p.serve("stopped")
	if err := p.StopContainer(p.ctx(), uid, p.Pod, stopped); err != nil {
		t.Fatal(err)
	}
	wantLines(t, p.outputOf(stopped), "ready", "USR1")
}

const messagesFile = `
[[containers]]
name = "file"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo to the log; echo to the file > /dev/termination-log; exit 3"]

[[containers]]
name = "path"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo elsewhere > /var/run/why; exit 0"]
terminationMessagePath = "/var/run/why"

[[containers]]
name = "silent"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo to the log; exit 3"]

[[containers]]
name = "log"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo to the log; exit 3"]
terminationMessagePolicy = "FallbackToLogsOnError"

[[containers]]
name = "both"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo to the log; echo to the file > /dev/termination-log; exit 3"]
terminationMessagePolicy = "FallbackToLogsOnError"

[[containers]]
name = "good"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo to the log"]
terminationMessagePolicy = "FallbackToLogsOnError"
`

// TestFieldsTerminationMessage tests the termination messages of containers.
//
// fields: containers[].{terminationMessagePath,terminationMessagePolicy}
func TestFieldsTerminationMessage(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(messagesFile))
	for _, test := range []struct {
		name string
		want lifecycle.Exit
	}{
		{"file", lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError, Message: "to the file\n"}},
		{"path", lifecycle.Exit{Reason: lifecycle.ReasonCompleted, Message: "elsewhere\n"}},
		{"silent", lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError}},
		{"log", lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError, Message: "to the log\n"}},
		{"both", lifecycle.Exit{Code: 3, Reason: lifecycle.ReasonError, Message: "to the file\n"}},
		{"good", lifecycle.Exit{Reason: lifecycle.ReasonCompleted}},
	} {
		ref, err := p.begin(test.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.wait(ref); got != test.want {
			t.Errorf("%s: exit %+v, want %+v", test.name, got, test.want)
		}
	}
}

const imageFile = `
imageArchives = ["app.tar", "busybox.tar"]

[[containers]]
name = "c"
image = "localhost/podstead/testserver:1"
%s

[[volumes]]
name = "img"
image = { reference = "localhost/podstead/%s:1"%s }
`

// TestFieldsImages tests image archives and pull policies. There is no registry, so that every request to one fails.
//
// fields: imageArchives, containers[].{image,imagePullPolicy}, volumes[].image.{reference,pullPolicy}
func TestFieldsImages(t *testing.T) {
	m := newTestHost(t) // has the image of busybox
	if out, err := exec.Command("cp", filepath.Join(programs, "testserver.tar"),
		filepath.Join(m.dir, "app.tar")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plain := m.parse(fmt.Sprintf(imageFile, "", "busybox", ""))
	again := func() error { // as for a restart
		_, err := m.PullImage(m.ctx(), plain, lifecycle.PullImage{Container: "c", Imported: true}, func(lifecycle.Progress) {})
		return err
	}
	if err := again(); err != nil {
		t.Errorf("imported archive whose image is missing: %v", err)
	}
	const mount = `volumeMounts = { img = "/img" }`
	for _, test := range []struct {
		container, image, volume string
		reason                   lifecycle.Reason // empty if no pull is needed
	}{
		{"", "busybox", "", ""},
		{`imagePullPolicy = "Never"`, "busybox", "", ""},
		{`imagePullPolicy = "IfNotPresent"`, "busybox", "", ""},
		{`imagePullPolicy = "Always"`, "busybox", "", "ErrImagePull"},
		{"", "none", "", ""}, // not mounted
		{mount, "busybox", "", ""},
		{mount, "busybox", `, pullPolicy = "Always"`, "ErrImagePull"},
		{mount, "none", `, pullPolicy = "Never"`, lifecycle.ReasonErrImageNeverPull},
		{mount, "none", `, pullPolicy = "IfNotPresent"`, "ErrImagePull"},
	} {
		p := m.parse(fmt.Sprintf(imageFile, test.container, test.image, test.volume))
		_, err := m.PullImage(m.ctx(), p, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {})
		if what := test.container + test.image + test.volume; test.reason == "" && err != nil {
			t.Errorf("%s: %v", what, err)
		} else if test.reason != "" {
			wantFailure(t, what, err, test.reason, "localhost/podstead/")
		}
	}

	if err := os.Remove(filepath.Join(m.dir, "app.tar")); err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Errorf("imported archive that was removed: %v", err)
	}
	_, err := m.PullImage(m.ctx(), plain, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {})
	wantFailure(t, "missing archive", err, "ErrImagePull", "app.tar")

	p := newPod(m, &spec.Pod{})
	p.Containers = m.parse("[[containers]]\nname = \"c\"\nimage = \"localhost/podstead/none:1\"\nimagePullPolicy = \"Never\"\n").Containers
	_, err = m.PullImage(m.ctx(), p.Pod, lifecycle.PullImage{Container: "c"}, func(lifecycle.Progress) {})
	wantFailure(t, "missing image", err, lifecycle.ReasonErrImageNeverPull, "localhost/podstead/none:1")
	p.ImageArchives = plain.ImageArchives
	p.Containers = m.parse(fmt.Sprintf(imageFile, `args = ["-no-such-flag"]`, "busybox", "")).Containers
	ref, err := p.begin("c")
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(ref); exit.Code != 2 { // exit code of the program in the archive's image
		t.Errorf("the program of the archive's image: exit %+v, output\n%s", exit, p.log(ref))
	}
}

const hostNetworkFile = `
name = "host"
hostNetwork = true
hostAliases = [{ ip = "10.1.2.3", hostnames = ["db"] }]

[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "readlink /proc/self/ns/net; hostname; grep -c '^10.1.2.3' /etc/hosts"]
`

// TestFieldsHostNetwork tests that a pod in the network of the host also has its host name.
//
// fields: hostNetwork
func TestFieldsHostNetwork(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(hostNetworkFile))
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, p.run("c"), network, name, "1")
}
