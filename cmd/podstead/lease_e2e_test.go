//go:build e2e

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"
)

func init() { imageCommands["spoil-replaced"] = spoilReplaced }

// spoilReplaced is the command `spoil-replaced IMAGE FILE`: while no daemon runs, it writes to the database of containerd that a bundle
// has replaced the image of a name, which has the digest in the file, by itself. The media type is missing, so containerd refuses to
// restore the name.
func spoilReplaced(ts *testscript.TestScript, _ bool, args []string) {
	db, err := bolt.Open(filepath.Join(ts.Getenv("PODSTEAD_STATE_DIR"), "engine/io.containerd.metadata.v1.bolt/meta.db"), 0o600,
		&bolt.Options{Timeout: time.Minute})
	ts.Check(err)
	defer db.Close()
	name, d := args[0], strings.TrimSpace(ts.ReadFile(args[1]))
	_, err = metadata.NewLeaseManager(metadata.NewDB(db, nil, nil)).Create(
		namespaces.WithNamespace(context.Background(), "podstead"), leases.WithID("podstead-replaced-"+digest.FromString(name).Encoded()),
		leases.WithLabels(map[string]string{
			"podstead.io/replaced": name, "podstead.io/replacement": fmt.Sprintf(`{"digest":%q,"size":1,"by":%q}`, d, d),
		}))
	ts.Check(err)
}
