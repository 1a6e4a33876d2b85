package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/podstead/podstead/spec"
)

// MaxUsage is the usage of a directory tree that is too deep to be measured. It exceeds any limit, and sums of it do not
// overflow.
const MaxUsage = math.MaxInt64 >> 10

// Usage is the usage of an emptyDir on disk or in huge pages.
type Usage struct {
	Volume string
	Bytes  int64         // as a limit counts them, see [TreeUsage]; [MaxUsage] if Deep
	Limit  spec.Quantity // zero for no limit
	// HugePages means that the volume is not on disk.
	HugePages bool
	// Deep means that the directory tree is too deep to be measured.
	Deep bool

	allocated, files int64
}

// Exceeded reports whether the volume exceeds its limit, with the kubelet's message for the reason Evicted. A directory
// tree that is too deep to be measured exceeds any limit. Otherwise a container could bypass its limit.
func (u Usage) Exceeded() (message string, exceeded bool) {
	switch {
	case u.Limit.Sign() <= 0:
		return "", false
	case u.Deep:
		return fmt.Sprintf("Usage of EmptyDir volume %q with the limit %q cannot be measured: %v. ", u.Volume, u.Limit.String(),
			ErrTooDeep), true
	case u.Limit.CmpInt64(u.Bytes) >= 0:
		return "", false
	case u.files > 0 && u.Limit.CmpInt64(u.allocated) >= 0:
		return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q: each of its %d files counts as at least %d bytes. ",
			u.Volume, u.Limit.String(), u.files, FileBytes), true
	}
	return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", u.Volume, u.Limit.String()), true
}

// Usage measures the emptyDir volumes that have a size limit, and all of them on disk if the pod has an ephemeral-storage
// limit. It walks their directory trees. Volumes in memory are left out, since the tmpfs enforces their limit. A volume
// that cannot be measured is in the error, and also in the list with a partial result.
func (s *Set) Usage(ctx context.Context, p Pod) ([]Usage, error) {
	return measure(ctx, s, p.UID, func(ctx context.Context) ([]Usage, error) {
		var list []Usage
		var failed errorList
		podLimit := p.Spec.Limit(spec.ResourceEphemeralStorage)
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			huge := v.EmptyDir != nil && v.EmptyDir.InHugePages()
			if v.EmptyDir == nil || v.EmptyDir.Medium == "Memory" || v.EmptyDir.SizeLimit == nil && (huge || podLimit.Sign() <= 0) {
				continue
			}
			used, err := DiskUsage(ctx, s.path(p.UID, v))
			if errors.Is(err, fs.ErrNotExist) {
				continue // not created yet
			}
			deep := errors.Is(err, ErrTooDeep)
			if err != nil && !deep {
				failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
			}
			u := Usage{Volume: v.Name, HugePages: huge, Bytes: used.Counted, Deep: deep, allocated: used.Bytes, files: used.Files}
			if deep {
				u.Bytes = MaxUsage
			}
			if v.EmptyDir.SizeLimit != nil {
				u.Limit = *v.EmptyDir.SizeLimit
			}
			list = append(list, u)
		}
		return list, failed.err()
	})
}

// measure serializes the measurements of a pod. They do not exclude other operations on the pod's volumes: containers
// control how long a walk takes, and concurrent changes do no harm.
func measure[T any](ctx context.Context, s *Set, uid string, f func(context.Context) (T, error)) (T, error) {
	if err := checkName("pod UID", uid); err != nil {
		var none T
		return none, err
	}
	return exclusive(ctx, &s.locks, "usage/"+uid, f)
}

// DiskUsage returns the total disk usage of directories of a pod. It is [MaxUsage] if one is too deep. Missing directories are ignored.
func (s *Set) DiskUsage(ctx context.Context, uid string, dirs ...string) (TreeUsage, error) {
	return measure(ctx, s, uid, func(ctx context.Context) (TreeUsage, error) {
		var total TreeUsage
		for _, dir := range dirs {
			used, err := DiskUsage(ctx, dir)
			switch {
			case errors.Is(err, ErrTooDeep):
				return TreeUsage{Bytes: MaxUsage, Counted: MaxUsage}, nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return TreeUsage{}, err
			}
			total.Bytes += used.Bytes
			total.Counted += used.Counted
			total.Files += used.Files
		}
		return total, nil
	})
}
