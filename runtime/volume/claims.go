package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/runtime/volume/tree"
	"github.com/podstead/podstead/spec"
)

// removedPrefix begins the name of a claim that is being removed. A claim's name cannot begin like that.
const removedPrefix = ".removed-"

func (s *Set) claimDir(name string) string { return filepath.Join(s.opts.ClaimsDir, name) }

// prepareClaim makes the folder of a claim when it is first used, and gives it to the pod's fsGroup once for each pod and
// boot.
func (s *Set) prepareClaim(ctx context.Context, p Pod, v *spec.Volume) error {
	claim := v.PersistentVolumeClaim
	if err := checkClaim(claim.ClaimName); err != nil {
		return err
	}
	release, err := s.locks.Lock(ctx, "claim/"+claim.ClaimName)
	if err != nil {
		return fmt.Errorf("wait for persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	defer release()
	made, err := makeDir(s.claimDir(claim.ClaimName), p.fsGroup())
	if made {
		err = atomicfile.SyncDir(s.opts.ClaimsDir)
	}
	if err != nil {
		return fmt.Errorf("persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	gid := p.fsGroup()
	if gid == nil || claim.ReadOnly || made {
		return nil
	}
	if err := s.grantClaim(ctx, p, v.Name, s.claimDir(claim.ClaimName), uint32(*gid)); err != nil {
		return fmt.Errorf("persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	return nil
}

// grantClaim gives a claim to a group, unless that has been done for the pod. However long it takes: given up, it would
// begin from the start.
func (s *Set) grantClaim(ctx context.Context, p Pod, volume, dir string, gid uint32) error {
	if err := s.mountFiles(p.UID); err != nil {
		return err
	}
	done := filepath.Join(s.filesDir(p.UID), ".granted-"+volume)
	if _, err := os.Lstat(done); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := tree.Grant(context.WithoutCancel(ctx), dir, gid, p.onRootMismatch()); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o600)
}

// checkClaim refuses what is not the name of a claim (a DNS subdomain): it could lead out of the folder of claims.
func checkClaim(name string) error {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("persistentvolumeclaim %q: %s", name, strings.Join(wrong, ", "))
	}
	return nil
}

// Claim is a persistent volume of this machine.
type Claim struct {
	Name string `json:"name"`
	Path string `json:"path"` // its folder
}

// ListClaims returns the persistent volumes of this machine by name. Whether a pod uses one is not known here.
func (s *Set) ListClaims(ctx context.Context) ([]Claim, error) {
	return alone(ctx, &s.locks, "the claims", func(context.Context) ([]Claim, error) {
		entries, err := os.ReadDir(s.opts.ClaimsDir)
		if err != nil {
			return nil, fmt.Errorf("list persistent volumes: %w", err)
		}
		list := make([]Claim, 0, len(entries))
		for _, e := range entries {
			info, err := os.Stat(s.claimDir(e.Name())) // a person may have put a link in its place
			if checkClaim(e.Name()) == nil && err == nil && info.IsDir() {
				list = append(list, Claim{Name: e.Name(), Path: s.claimDir(e.Name())})
			}
		}
		return list, nil
	})
}

// RemoveClaim removes a persistent volume and what is in it. The caller has made sure that no pod uses it. One that is not
// there is an error that is [fs.ErrNotExist]; one on which something is mounted is refused. Once it has begun, the name
// is free; what a crash leaves goes with the next removal.
func (s *Set) RemoveClaim(ctx context.Context, name string) error {
	if err := checkClaim(name); err != nil {
		return fmt.Errorf("remove %w", err)
	}
	_, err := alone(ctx, &s.locks, "claim/"+name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.removeClaim(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("remove persistentvolumeclaim %q: %w", name, err)
	}
	return nil
}

func (s *Set) removeClaim(ctx context.Context, name string) error {
	removed := filepath.Join(s.opts.ClaimsDir, removedPrefix+name)
	if err := tree.Remove(ctx, removed); err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.claimDir(name)))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is mounted there", mounts[0].Mountpoint)
	}
	if err := os.Rename(s.claimDir(name), removed); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(s.opts.ClaimsDir); err != nil {
		return err
	}
	return tree.Remove(ctx, removed)
}
