package fakeruntime

import (
	"context"
	"testing"

	"github.com/podstead/podstead/runtime/runtimetest"
)

func TestContract(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
		const image = "localhost/podstead/busybox:1"
		dir := t.TempDir()
		r := New(Options{Images: []string{image}, LogDir: dir})
		return runtimetest.Harness{
			Runtime: r, Image: image, LogDir: dir,
			Retag:   func() { r.Retag(image) },
			Collect: func(context.Context) error { return nil }, // they are deleted at once
			Reopen:  func() runtimetest.Runtime { return r },
		}
	})
}
