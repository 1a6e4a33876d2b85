package spec

import (
	"fmt"
	"slices"
	"testing"
)

func TestOverlaps(t *testing.T) {
	port := func(ip string, number int32, protocol Protocol) ContainerPort {
		return ContainerPort{HostIP: ip, HostPort: number, Protocol: protocol}
	}
	for _, test := range []struct {
		a, b ContainerPort
		want bool
	}{
		{port("", 80, "TCP"), port("", 80, "TCP"), true},
		{port("", 80, "TCP"), port("", 81, "TCP"), false},
		{port("", 80, "TCP"), port("", 80, "UDP"), false},
		{port("", 80, "TCP"), port("127.0.0.1", 80, "TCP"), true},
		{port("127.0.0.1", 80, "TCP"), port("127.0.0.2", 80, "TCP"), false},
		{port("127.0.0.1", 80, "TCP"), port("127.0.0.1", 80, "TCP"), true},
		{port("0.0.0.0", 80, "TCP"), port("127.0.0.1", 80, "TCP"), true},
		{port("0.0.0.0", 80, "TCP"), port("::", 80, "TCP"), false},
		{port("::", 80, "TCP"), port("fd00::1", 80, "TCP"), true},
		{port("::1", 80, "TCP"), port("127.0.0.1", 80, "TCP"), false},
	} {
		if test.a.Overlaps(test.b) != test.want || test.b.Overlaps(test.a) != test.want {
			t.Errorf("%+v and %+v: want %v", test.a, test.b, test.want)
		}
	}
}

func TestHostPorts(t *testing.T) {
	pod := &Pod{
		InitContainers: []Container{{Ports: []ContainerPort{{HostPort: 1}}}},
		Containers:     []Container{{Ports: []ContainerPort{{ContainerPort: 80}, {HostPort: 2}}}, {Ports: []ContainerPort{{HostPort: 3}}}},
	}
	ports := pod.HostPorts()
	if len(ports) != 3 || ports[0].HostPort != 1 || ports[1].HostPort != 2 || ports[2].HostPort != 3 {
		t.Errorf("host ports %+v", ports)
	}
	var fields []string
	for field := range pod.HostPortFields() {
		fields = append(fields, field)
	}
	want := []string{"initContainers[0].ports[0].hostPort", "containers[0].ports[1].hostPort", "containers[1].ports[0].hostPort"}
	if !slices.Equal(fields, want) {
		t.Errorf("fields %q, want %q", fields, want)
	}
	for range pod.HostPortFields() { // must not panic: the iterator stops
		break
	}
}

// TestHostPortsOneAfterTheOther: init containers that run one after the other can have the same host port, as in the Pod API.
func TestHostPortsOneAfterTheOther(t *testing.T) {
	const container = "[[%s]]\nname = %q\nimage = \"i\"\n%s\nports = [{ containerPort = %d, hostPort = 80 }]\n"
	const app = "[[containers]]\nname = \"app\"\nimage = \"i\"\n"
	init := fmt.Sprintf(container, "initContainers", "first", "", 1) + fmt.Sprintf(container, "initContainers", "second", "", 2)
	sidecar := fmt.Sprintf(container, "initContainers", "side", `restartPolicy = "Always"`, 4)
	for _, test := range []struct {
		text string
		want []string // container ports of the host port; none: the file is refused
	}{
		{init + app, []string{"initContainers[1].ports[0].hostPort 2"}},
		{init + fmt.Sprintf(container, "containers", "app", "", 3), []string{"containers[0].ports[0].hostPort 3"}},
		{sidecar + fmt.Sprintf(container, "containers", "app", "", 5), nil},
		{sidecar + init + app, []string{"initContainers[0].ports[0].hostPort 4"}},
	} {
		pod, problems := Parse("web.toml", []byte(test.text))
		if (pod == nil) != (test.want == nil) {
			t.Fatalf("%s\n%v", test.text, problems)
		}
		if pod == nil {
			continue
		}
		var got []string
		for field, port := range pod.HostPortFields() {
			got = append(got, fmt.Sprintf("%s %d", field, port.ContainerPort))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s\ngot %q, want %q", test.text, got, test.want)
		}
	}
}
