package spec

import (
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
