package image

import (
	"archive/tar"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"sync/atomic"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// labelPrograms of an unpacked layer says whether it has files with 32-bit code. Layers that an older version has unpacked do not have it.
const labelPrograms = "podstead.io/programs"

// The values of labelPrograms.
const (
	only64 = "64-bit"
	some32 = "32-bit"
)

// Only64 reports whether no layer of an image has a program or a library for 32-bit processes. It is false if that is not known.
func (s *Store) Only64(ctx context.Context, img Image) (bool, error) {
	sn := s.client.SnapshotService(s.opts.Snapshotter)
	for key := img.Snapshot; key != ""; {
		info, err := sn.Stat(ctx, key)
		if err != nil {
			return false, fmt.Errorf("image %q: %w", img.Name, err)
		}
		if info.Labels[labelPrograms] != only64 {
			return false, nil
		}
		key = info.Parent
	}
	return true, nil
}

type programsKey struct{}

// programs is what the files of a layer contain. They are known when the whole stream was read.
type programs struct{ has32, read atomic.Bool }

// inspect looks at the start of a file, of which r is the content. An error of the stream is found by the next read.
func (p *programs) inspect(h *tar.Header, r io.Reader) {
	var start [elf.EI_CLASS + 1]byte
	if h.Size < int64(len(start)) {
		return
	}
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return
	}
	if string(start[:elf.EI_CLASS]) == elf.ELFMAG && elf.Class(start[elf.EI_CLASS]) != elf.ELFCLASS64 {
		p.has32.Store(true)
	}
}

// inspecting is the service that unpacks layers. It keeps in the budget which layers have 32-bit code.
type inspecting struct{ containerd.DiffService }

func (d inspecting) Apply(ctx context.Context, desc ocispec.Descriptor, m []mount.Mount,
	opts ...diff.ApplyOpt,
) (ocispec.Descriptor, error) {
	p := &programs{}
	applied, err := d.DiffService.Apply(context.WithValue(ctx, programsKey{}, p), desc, m, opts...)
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok && err == nil && p.read.Load() {
		b.learn(applied.Digest, p.has32.Load())
	}
	return applied, err
}

// labelling is a snapshotter that records what is known of a layer, in the transaction that commits it.
type labelling struct{ snapshots.Snapshotter }

func (l labelling) Commit(ctx context.Context, name, key string, opts ...snapshots.Opt) error {
	value, err := l.programsOf(ctx, name, key, opts)
	if err != nil {
		return err
	}
	if value != "" {
		opts = append(opts, withLabel(labelPrograms, value))
	}
	return l.Snapshotter.Commit(ctx, name, key, opts...)
}

// programsOf returns the value of the label for a layer; empty if it is not known. The name of a layer is derived from its parent and its
// content, so that layers that are unpacked at the same time are not confused.
func (l labelling) programsOf(ctx context.Context, name, key string, opts []snapshots.Opt) (string, error) {
	b, ok := ctx.Value(budgetKey{}).(*budget)
	if !ok {
		return "", nil
	}
	var info snapshots.Info
	for _, opt := range opts {
		if err := opt(&info); err != nil {
			return "", err
		}
	}
	parent := info.Parent
	if parent == "" { // containerd names it with the commit if layers are unpacked in parallel
		active, err := l.Stat(ctx, key)
		if err != nil {
			return "", err
		}
		parent = active.Parent
	}
	return b.programsOf(name, digest.Digest(parent)), nil
}

func withLabel(name, value string) snapshots.Opt {
	return func(info *snapshots.Info) error {
		if info.Labels == nil {
			info.Labels = map[string]string{}
		}
		info.Labels[name] = value
		return nil
	}
}

// learn adds what a layer contains.
func (b *budget) learn(layer digest.Digest, has32 bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.programs == nil {
		b.programs = map[digest.Digest]string{}
	}
	b.programs[layer] = only64
	if has32 {
		b.programs[layer] = some32
	}
}

// programsOf returns what the layer contains that has a name as an unpacked layer on a parent; empty if that is not known.
func (b *budget) programsOf(name string, parent digest.Digest) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for layer, value := range b.programs {
		chain := []digest.Digest{parent, layer}
		if parent == "" {
			chain = chain[1:]
		}
		if identity.ChainID(chain).String() == name {
			return value
		}
	}
	return ""
}
