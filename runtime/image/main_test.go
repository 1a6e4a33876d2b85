//go:build !e2e

package image_test

import (
	"testing"

	"github.com/containerd/log"
	"go.uber.org/goleak"
)

// The store may leave nothing running behind, and containerd's own words about
// failures that are meant are noise here.
func TestMain(m *testing.M) {
	if err := log.SetLevel("error"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
