package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/spec"
)

// removedPrefix is the prefix of the directory of a claim during its removal. Names of claims cannot start with it.
const removedPrefix = ".removed-"

// leftPrefix is the prefix of directories with what killed daemons have left of imports and removals.
const leftPrefix = ".left-"

// projectPrefix is the prefix of the file with the project of the pod that has created a claim. Claims of earlier versions, and of pods
// without a project, have none.
const projectPrefix = ".project-"

func (s *Set) projectFile(name string) string {
	return filepath.Join(s.opts.ClaimsDir, projectPrefix+name)
}

func (s *Set) claimDir(name string) string { return filepath.Join(s.opts.ClaimsDir, name) }

// prepareClaim creates the directory of a claim at its first use, and changes its group to the pod's fsGroup once for
// each pod and boot.
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
	if err := s.recordProject(claim.ClaimName, p.Spec.Labels[spec.ProjectLabel]); err != nil {
		return fmt.Errorf("persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	created, err := createDir(s.claimDir(claim.ClaimName), p.fsGroup())
	if created {
		err = atomicfile.SyncDir(s.opts.ClaimsDir)
	}
	if err != nil {
		return fmt.Errorf("persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	gid := p.fsGroup()
	if gid == nil || claim.ReadOnly || created {
		return nil
	}
	if err := s.setClaimOwnership(ctx, p, v.Name, s.claimDir(claim.ClaimName), uint32(*gid)); err != nil {
		return fmt.Errorf("persistentvolumeclaim %q: %w", claim.ClaimName, err)
	}
	return nil
}

// recordProject records the project that is about to create a claim. The project of a claim that exists does not change.
func (s *Set) recordProject(name, project string) error {
	switch _, err := os.Lstat(s.claimDir(name)); {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case project == "":
		return ignore(os.Remove(s.projectFile(name)), fs.ErrNotExist)
	}
	return atomicfile.Write(s.projectFile(name), []byte(project), 0o600)
}

// setClaimOwnership changes the group of a claim unless that was done for the pod, with this fsGroup. It ignores the end of ctx, since
// it would have to start over.
func (s *Set) setClaimOwnership(ctx context.Context, p Pod, volume, dir string, gid uint32) error {
	if err := s.mountFiles(p.UID); err != nil {
		return err
	}
	done := filepath.Join(s.filesDir(p.UID), grantedPrefix+volume)
	grant := fmt.Sprintf("%s %d", filepath.Base(dir), gid)
	if granted, err := os.ReadFile(done); err != nil && !errors.Is(err, fs.ErrNotExist) || string(granted) == grant {
		return err
	}
	if err := setOwnership(context.WithoutCancel(ctx), dir, gid, p.onRootMismatch()); err != nil {
		return err
	}
	return os.WriteFile(done, []byte(grant), 0o600)
}

// grantedPrefix is the prefix of the file that notes the claim of a volume whose group was changed for a pod, and the group.
const grantedPrefix = ".granted-"

// forgetGrants makes pods that have used a claim change its group again, since it gets other files.
func (s *Set) forgetGrants(claim string) error {
	notes, err := filepath.Glob(filepath.Join(s.filesDir("*"), grantedPrefix+"*"))
	for _, note := range notes {
		text, readErr := os.ReadFile(note)
		if readErr == nil && strings.HasPrefix(string(text), claim+" ") {
			readErr = os.Remove(note)
		}
		err = errors.Join(err, ignore(readErr, fs.ErrNotExist)) // its pod is removed
	}
	return err
}

// checkClaim reports an invalid name of a claim. It must be a DNS subdomain, so that it cannot lead out of the directory
// of claims.
func checkClaim(name string) error {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("persistentvolumeclaim %q: %s", name, strings.Join(wrong, ", "))
	}
	return nil
}

// Claim is a persistent volume on this host.
type Claim struct {
	Name    string `json:"name"`
	Path    string `json:"path"`              // its directory
	Project string `json:"project,omitempty"` // whose pod has created it; empty: not known, or none
}

// ListClaims returns the persistent volumes on this host by name. It does not check which pods use them.
func (s *Set) ListClaims(ctx context.Context) ([]Claim, error) {
	return exclusive(ctx, &s.locks, "the claims", func(context.Context) ([]Claim, error) {
		entries, err := os.ReadDir(s.opts.ClaimsDir)
		if err != nil {
			return nil, fmt.Errorf("list persistent volumes: %w", err)
		}
		list := make([]Claim, 0, len(entries))
		for _, e := range entries {
			info, err := os.Stat(s.claimDir(e.Name())) // it may be a link created by the administrator
			if checkClaim(e.Name()) == nil && err == nil && info.IsDir() {
				project, err := os.ReadFile(s.projectFile(e.Name()))
				if ignore(err, fs.ErrNotExist) != nil {
					return nil, fmt.Errorf("list persistent volumes: %w", err)
				}
				list = append(list, Claim{Name: e.Name(), Path: s.claimDir(e.Name()), Project: string(project)})
			}
		}
		return list, nil
	})
}

// RemoveClaim deletes a persistent volume and its data. The caller makes sure that no pod uses it. The error is
// [fs.ErrNotExist] if there is none. A volume with a mount in it is refused. The name is free as soon as the removal has
// started. After a crash, [Set.SweepClaims] completes it.
func (s *Set) RemoveClaim(ctx context.Context, name string) error {
	if err := checkClaim(name); err != nil {
		return fmt.Errorf("remove %w", err)
	}
	_, err := exclusive(ctx, &s.locks, "claim/"+name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.removeClaim(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("remove persistentvolumeclaim %q: %w", name, err)
	}
	return nil
}

func (s *Set) removeClaim(ctx context.Context, name string) error {
	removed := filepath.Join(s.opts.ClaimsDir, removedPrefix+name)
	for _, left := range []string{removed, filepath.Join(s.opts.ClaimsDir, importPrefix+name)} {
		if err := RemoveTree(ctx, left); err != nil {
			return err
		}
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.claimDir(name)))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is a mount point", mounts[0].Mountpoint)
	}
	if err := os.Remove(s.projectFile(name)); ignore(err, fs.ErrNotExist) != nil {
		return err
	}
	if err := os.Rename(s.claimDir(name), removed); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(s.opts.ClaimsDir); err != nil {
		return err
	}
	return RemoveTree(ctx, removed)
}

// setLeftAside renames what a killed daemon has left of imports and removals of claims, so that nothing else uses it. No other call may
// run.
func (s *Set) setLeftAside() error {
	entries, err := os.ReadDir(s.opts.ClaimsDir)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), importPrefix) && !strings.HasPrefix(e.Name(), removedPrefix)
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	aside, err := os.MkdirTemp(s.opts.ClaimsDir, leftPrefix)
	for _, e := range entries {
		if err == nil {
			err = os.Rename(filepath.Join(s.opts.ClaimsDir, e.Name()), filepath.Join(aside, e.Name()))
		}
	}
	return err
}

// SweepClaims deletes what killed daemons have left of imports and removals of claims.
func (s *Set) SweepClaims(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(s.opts.ClaimsDir, leftPrefix+"*"))
	for _, dir := range left {
		err = errors.Join(err, RemoveTree(ctx, dir))
	}
	return err
}
