//go:build soak && vm

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
	"github.com/podstead/podstead/test/vm"
)

const (
	repository = "../.."
	// unpacked has the programs of Debian packages that .ci/deps cluster unpacks.
	unpacked = repository + "/.cache/debian/usr"
	// payload is the directory of the programs in the virtual machine.
	payload = "/payload"
	// commandTimeout is for a script in the virtual machine.
	commandTimeout = 5 * time.Minute
	nodeMemory     = 4096 // MiB
	nodeName       = "podstead-vm"
	pauseImage     = "localhost/podstead/pause:1"
)

// prepare gives the virtual machine its programs and its network.
const prepare = `mkdir -p ` + payload + `; tar -C ` + payload + ` -xf /dev/vdb
cp -al --remove-destination ` + payload + `/root/. /; systemctl daemon-reload
modprobe -a virtio_net overlay veth bridge nf_tables nft_chain_nat nft_ct nft_fib_inet nft_masq nft_nat nft_redir nft_reject_inet
for i in 1 2 3 4 5 6 7 8 9 10; do [ ! -e /sys/class/net/e* ] || break; sleep 1; done
dev=$(basename /sys/class/net/e*); ip address add ` + vm.GuestAddress + ` dev $dev; ip link set $dev up
ip route add default via ` + vm.HostAddress + `
`

// containerdConfig is for the containerd of the kubelet, the one of Debian.
const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pauseImage + `"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "` + payload + `/cni"
conf_dir = "` + payload + `/etc/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`

const networkConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}]}
`

// kubeletConfig has the defaults, except for what a node of a test does without: certificates of clients, eviction, chains of iptables.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [10.99.0.10]
clusterDomain: cluster.local
evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
makeIPTablesUtilChains: false
`

// node is a virtual machine with Podstead, and with containerd and a kubelet, which does not run yet.
type node struct {
	*testing.T
	machine *vm.Machine
}

// newNode boots a virtual machine with pod files, in the directory pods of the payload.
func newNode(t *testing.T, s *server, pods map[string][]byte) *node {
	t.Helper()
	work, remove, err := vm.WorkDir()
	must(t, err)
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	tree := filepath.Join(work, "tree")
	for _, dir := range []string{"bin", "cni", "etc/cni", "pods/images", "root"} {
		must(t, os.MkdirAll(filepath.Join(tree, dir), 0o755)) // as in Debian
	}
	absolute, err := filepath.Abs(filepath.Join(tree, "root"))
	must(t, err)
	run(t, repository, "make", "--no-print-directory", "install", "DESTDIR="+absolute)
	run(t, repository, "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(work, "agent"), "./test/vm/agent")
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		copyFile(t, filepath.Join(unpacked, "bin", name), filepath.Join(tree, "bin", name))
	}
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		copyFile(t, filepath.Join(unpacked, "lib/cni", name), filepath.Join(tree, "cni", name))
	}
	copyFile(t, filepath.Join(programs, "kubelet"), filepath.Join(tree, "bin/kubelet"))
	for _, image := range []string{"busybox", "testserver"} {
		copyFile(t, filepath.Join(repository, "examples/images", image+".tar"), filepath.Join(tree, "pods/images", image+".tar"))
	}
	writePause(t, filepath.Join(tree, "pause.tar"))
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig, "cni/pods.conflist": networkConfig, "kubelet.yaml": kubeletConfig,
		"kubeconfig": s.kubeconfig("https://" + vm.HostAddress + ":" + s.port),
	} {
		must(t, os.WriteFile(filepath.Join(tree, "etc", name), []byte(text), 0o600))
	}
	for name, text := range pods {
		must(t, os.WriteFile(filepath.Join(tree, "pods", name), text, 0o600))
	}
	image, err := vm.Build(t.Context(), filepath.Join(repository, ".cache/vm"))
	must(t, err)
	o := vm.Options{
		Dir: filepath.Join(work, "1"), Agent: filepath.Join(work, "agent"), Payload: filepath.Join(work, "payload"),
		Disk: filepath.Join(work, "disk"), Memory: nodeMemory, Network: true,
	}
	must(t, os.Mkdir(o.Dir, 0o700))
	must(t, vm.WritePayload(o.Payload, tree))
	must(t, image.CopyDisk(t.Context(), o.Disk))
	machine, err := vm.Boot(t.Context(), image, o)
	must(t, err)
	t.Cleanup(func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	})
	n := &node{t, machine}
	n.sh(prepare)
	return n
}

// try runs a script until its first command that fails.
func (n *node) try(script string) (string, error) {
	var out bytes.Buffer
	// also works while a failed test collects its logs; a command has a timeout of its own
	err := n.machine.Run(context.WithoutCancel(n.Context()), &out, vm.Command{Args: []string{"sh", "-ec", script}, Timeout: commandTimeout})
	return out.String(), err
}

// sh runs a script, and fails the test if the script fails.
func (n *node) sh(script string) string {
	n.Helper()
	out, err := n.try(script)
	if err != nil {
		n.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

// startKubelet starts containerd and the kubelet, and waits until the node is ready.
func (n *node) startKubelet(s *server) {
	n.Helper()
	n.Cleanup(func() {
		if n.Failed() {
			state, _ := n.try(`journalctl --no-pager -u kubelet -u containerd | tail -n 100`)
			n.Log(state)
		}
	})
	n.sh(`export PATH=` + payload + `/bin:$PATH; systemctl start dbus
systemd-run --unit=containerd -p Delegate=yes -p KillMode=process -p Environment=PATH=$PATH -- containerd -c ` + payload + `/etc/containerd.toml
timeout 120 sh -c 'until ctr version >/dev/null 2>&1; do sleep 1; done'
for image in ` + payload + `/pods/images/*.tar ` + payload + `/pause.tar; do ctr -n k8s.io images import $image; done
systemd-run --unit=kubelet -p KillMode=process -p Environment=PATH=$PATH -- kubelet --config=` + payload + `/etc/kubelet.yaml --kubeconfig=` +
		payload + `/etc/kubeconfig --hostname-override=` + nodeName)
	n.await("the node is ready", func() error {
		var x struct {
			Status struct{ Conditions []condition }
		}
		if err := s.get(n.Context(), "/api/v1/nodes/"+nodeName, &x); err != nil {
			return err
		}
		for _, c := range x.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", x.Status.Conditions)
	})
}

// await repeats a check until it succeeds.
func (n *node) await(what string, check func() error) {
	n.Helper()
	for end := time.Now().Add(settleTimeout); ; <-time.After(2 * time.Second) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("timed out waiting until %s: %v", what, err)
		}
	}
}

// get decodes an object of the API server.
func (s *server) get(ctx context.Context, path string, object any) error {
	code, text, err := s.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, code, text)
	}
	return json.Unmarshal(text, object)
}

// kubeconfig returns a configuration of clients that reach the API server at a URL. Its certificate is not for this address.
func (s *server) kubeconfig(url string) string {
	return `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "` + url + `", insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: ` + token + `}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`
}

// startScheduler starts a scheduler.
func startScheduler(t *testing.T, s *server) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(file, []byte(s.kubeconfig(s.url)), 0o600))
	start(t, dir, "kube-scheduler", "--kubeconfig", file, "--leader-elect=false", "--secure-port=0")
}

// writePause writes the image of the containers that hold the namespaces of pods.
func writePause(t *testing.T, path string) {
	t.Helper()
	program, err := exec.LookPath("busybox")
	must(t, err)
	text, err := os.ReadFile(program)
	must(t, err)
	f, err := os.Create(path)
	must(t, err)
	must(t, ocitar.WriteOCI(f, ocitar.Image{
		Name:   pauseImage,
		Config: ocispec.ImageConfig{Entrypoint: []string{"/busybox", "sleep", "1000000000"}},
		Layers: []ocitar.Layer{{{Path: "busybox", Mode: 0o755, Data: text}}},
	}))
	must(t, f.Close())
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// copyFile makes a program or an image available below another path. It fails with what has to be run before.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s: run make kubelet", err, out)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
