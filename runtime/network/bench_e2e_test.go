//go:build e2e

package network

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/podstead/podstead/runtime/namespace"
)

// BenchmarkSetup measures Setup with a host port. Teardown and the removal of the link are not measured.
func BenchmarkSetup(b *testing.B) {
	dir := b.TempDir()
	pin := func(name string) string {
		pins, err := namespace.Pin(filepath.Join(dir, name), namespace.Options{Network: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = namespace.Unpin(filepath.Join(dir, name)) })
		return pins.Network
	}
	n, err := New(b.Context(), Options{
		StateFile: filepath.Join(dir, "state.json"), LeaseFile: filepath.Join("/dev/shm", filepath.Base(dir)+".json"),
		BootID: "this boot", NetnsPath: pin("host"),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	pod := pin("pod")
	request := func(uid string) Request {
		return Request{UID: uid, PodName: uid, NetnsPath: pod, Ports: []Port{{HostPort: 8080, ContainerPort: 80}}}
	}
	if _, err := n.Setup(b.Context(), Request{UID: "first", PodName: "first", NetnsPath: pin("first")}); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		uid := "u" + strconv.Itoa(i)
		i++
		if _, err := n.Setup(b.Context(), request(uid)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := n.Teardown(b.Context(), uid); err != nil {
			b.Fatal(err)
		}
		n.workers.Wait()
		b.StartTimer()
	}
}

// BenchmarkTeardown measures Teardown without the removal of the link.
func BenchmarkTeardown(b *testing.B) {
	dir := b.TempDir()
	pins, err := namespace.Pin(filepath.Join(dir, "host"), namespace.Options{Network: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = namespace.Unpin(filepath.Join(dir, "host")) }()
	pod, err := namespace.Pin(filepath.Join(dir, "pod"), namespace.Options{Network: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = namespace.Unpin(filepath.Join(dir, "pod")) }()
	n, err := New(b.Context(), Options{
		StateFile: filepath.Join(dir, "state.json"), LeaseFile: filepath.Join("/dev/shm", filepath.Base(dir)+".json"),
		BootID: "this boot", NetnsPath: pins.Network,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	i := 0
	for b.Loop() {
		b.StopTimer()
		uid := "u" + strconv.Itoa(i)
		i++
		n.workers.Wait()
		_, err := n.Setup(b.Context(),
			Request{UID: uid, PodName: uid, NetnsPath: pod.Network, Ports: []Port{{HostPort: 8080, ContainerPort: 80}}})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := n.Teardown(b.Context(), uid); err != nil {
			b.Fatal(err)
		}
	}
}
