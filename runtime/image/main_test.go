//go:build !e2e

package image_test

import (
	"testing"

	"github.com/containerd/log"
	"go.uber.org/goleak"

	"github.com/podstead/podstead/test/parallel"
)

// The store must not leave goroutines. containerd's log is discarded, because the tests provoke failures.
func TestMain(m *testing.M) {
	if err := log.SetLevel("error"); err != nil {
		panic(err)
	}
	parallel.Set()
	goleak.VerifyTestMain(m)
}
