package sandbox

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRequest(t *testing.T) {
	pod := &spec.Pod{Name: "web", Hostname: "edge", Subdomain: "shop", Containers: []spec.Container{{Ports: []spec.ContainerPort{
		{ContainerPort: 80, HostPort: 8080, HostIP: "127.0.0.1", Protocol: "TCP"},
		{ContainerPort: 53, HostPort: 5353, Protocol: "UDP"},
		{ContainerPort: 81},
	}}}}
	got := request("u", pod, namespace.Pins{Network: "/ns"})
	want := []network.Port{
		{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: 8080, ContainerPort: 80, Protocol: "TCP"},
		{HostPort: 5353, ContainerPort: 53, Protocol: "UDP"},
	}
	if diff := cmp.Diff(want, got.Ports, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if got.UID != "u" || got.PodName != "web" || got.NetnsPath != "/ns" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"edge.shop.default.svc.cluster.local", "edge"}, got.Names); diff != "" {
		t.Errorf("names, without edge.shop, which may be another host (-want +got):\n%s", diff)
	}
}

func TestHostPortsWithoutBridge(t *testing.T) {
	n := &Network{mode: NetworkNone}
	pod := &spec.Pod{Containers: []spec.Container{{Name: "c", Ports: []spec.ContainerPort{{ContainerPort: 80, HostPort: 8080}}}}}
	refused := n.Admit(pod)
	if len(refused) != 1 {
		t.Fatalf("%v, want one refusal", refused)
	}
	if r, is := errors.AsType[lifecycle.Refusal](refused[0]); !is || r.Reason != lifecycle.ReasonNodePorts || r.Hint == "" {
		t.Errorf("%+v, want reason NodePorts with a hint", refused[0])
	}
	if _, err := n.Connect(t.Context(), "u", pod, namespace.Pins{}); !errors.Is(err, errNoHostPorts) {
		t.Errorf("connect: %v, want %v", err, errNoHostPorts)
	}
	if refused := n.Admit(&spec.Pod{}); len(refused) != 0 {
		t.Errorf("pod without host ports: %v", refused)
	}
}

// TestPortHint: the process that has a port may be sshd, so no hint advises to stop it.
func TestPortHint(t *testing.T) {
	for _, conflict := range []network.ConflictError{{PID: 812, Process: "sshd"}, {}} {
		hint := portHint(&conflict)
		if !strings.HasPrefix(hint, "use another host port") || strings.Contains(hint, "stop") || strings.Contains(hint, "kill") {
			t.Errorf("%v: hint %q", &conflict, hint)
		}
	}
}
