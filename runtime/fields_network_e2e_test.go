//go:build e2e

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const portsFile = `
name = "web"

[[containers]]
name = "server"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
	mkdir /www; echo hello > /www/index.html
	httpd -p 81 -h /www
	echo ready
	exec httpd -f -p 80 -h /www''']
ports = [
	{ name = "http", containerPort = 80, hostPort = 8080 },
	{ name = "local", containerPort = 81, hostPort = 7070, hostIP = "127.0.0.1" },
	{ name = "dns", containerPort = 53, hostPort = 5353, protocol = "UDP" },
]

[[containers]]
name = "neighbour"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "wget -q -O - http://127.0.0.1/"]
`

// TestFieldsPorts tests which ports, addresses and protocols of the host lead to ports of the pod.
//
// fields: containers[].ports[].{containerPort,hostPort,hostIP,protocol}
func TestFieldsPorts(t *testing.T) {
	m := newTestHost(t)
	p := newPod(m, m.parse(portsFile))
	server := p.serve("server")
	wantLines(t, p.run("neighbour"), "hello")

	gateway := m.bridgeAddress()
	for _, addr := range []string{"127.0.0.1:8080", gateway + ":8080", "127.0.0.1:7070"} {
		m.eventually("a response from "+addr, func() (string, bool) {
			text, err := get(addr)
			return fmt.Sprintf("%q, %v", text, err), text == "hello\n"
		})
	}
	for _, addr := range []string{gateway + ":7070", "127.0.0.1:80", "127.0.0.1:5353"} {
		if text, err := get(addr); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: response %q, %v; want connection refused", addr, text, err)
		}
	}
	packets := p.listenInside(server, "udp4", ":53")
	defer packets.Close()
	sender, err := net.Dial("udp4", net.JoinHostPort(gateway, "5353"))
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := io.WriteString(sender, "by UDP"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if err := packets.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := packets.ReadFrom(text); err != nil || string(text[:n]) != "by UDP" {
		t.Errorf("UDP packet %q, %v", text[:n], err)
	}
	if err := p.KillContainer(p.ctx(), uid, server); err != nil {
		t.Fatal(err)
	}
	p.wait(server)
}

// listenInside listens for packets in the network namespace of a running container.
func (p *pod) listenInside(ref lifecycle.Ref, network, addr string) net.PacketConn {
	p.Helper()
	var conn net.PacketConn
	path := fmt.Sprintf("/proc/%d/ns/net", p.pidOf(ref))
	err := namespace.OnOwnThread(func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return err
		}
		conn, err = net.ListenPacket(network, addr)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return conn
}

// bridgeAddress returns the address of the host in the pod network.
func (m *testHost) bridgeAddress() string {
	m.Helper()
	links, err := net.Interfaces()
	if err != nil {
		m.Fatal(err)
	}
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil {
			m.Fatal(err)
		}
		for _, addr := range addrs {
			if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
				return ip.IP.String()
			}
		}
	}
	m.Fatalf("no link of %v has an address of the pod network", links)
	return ""
}

// get requests the page of a server.
func get(addr string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1000))
	return string(text), err
}
