package container

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/oci"
)

// TestUnknownUser checks that the error for a user that an image does not have names both.
func TestUnknownUser(t *testing.T) {
	root := t.TempDir() // without /etc/passwd
	s := &specs.Spec{Root: &specs.Root{Path: root}, Process: &specs.Process{}}
	err := withUser(oci.User{Primary: "app"}, "example.com/shop:1")(context.Background(), nil, &containers.Container{ID: "c"}, s)
	if err == nil || !strings.HasPrefix(err.Error(), `find user "app" in /etc/passwd and /etc/group of image "example.com/shop:1": `) {
		t.Errorf("error %v", err)
	}
}
