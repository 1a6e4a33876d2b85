package image

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

const (
	// labelExpire is the label of containerd with the time after which it deletes a lease.
	labelExpire = "containerd.io/gc.expire"
	// importedTTL is how long an image is kept after an import: the rest of a bundle may be large.
	importedTTL = time.Hour
	// partialTTL is how long the content of a failed pull is kept.
	partialTTL = 7 * 24 * time.Hour
	// holdTTL is how long content is kept for an operation whose daemon was killed, and did not start again.
	holdTTL = 24 * time.Hour
)

// leaseKind is a kind of leases of this package. They outlive the daemon. Each has a key, such as the record of an image. The prefix and the
// label are a format: another version of the daemon must find what this one has written.
type leaseKind struct {
	prefix string        // of the ID
	label  string        // has the key
	ttl    time.Duration // 0: until it is released
	plain  bool          // the ID ends with the key itself, not with its digest
}

var (
	// byPerson notes which images a person has pulled or imported. The key is the record. It is not a label of the record, because a pull
	// for a pod replaces these.
	byPerson = leaseKind{prefix: "podstead-by-hand-", label: "podstead.io/by-hand"}
	// byImport keeps an image of [Store.ImportUsed] until a pod uses it. The key is the record.
	byImport = leaseKind{prefix: "podstead-imported-", label: "podstead.io/imported", ttl: importedTTL}
	// byReplacement keeps the image that [Store.ImportUsed] has replaced, with its content. The key is the record.
	byReplacement = leaseKind{prefix: "podstead-replaced-", label: "podstead.io/replaced", ttl: importedTTL}
	// byGeneration keeps the images of [Store.Keep], with their manifests. The key is the name of the pod.
	byGeneration = leaseKind{prefix: "podstead-kept-images-", label: "podstead.io/kept-images", plain: true}
	// byWork keeps what is not part of an image yet. The key is the kind of work, and a name, a digest or an archive. The next work with
	// this key takes the lease over.
	byWork = leaseKind{prefix: "podstead-image-", label: "podstead.io/image-work", ttl: partialTTL}

	leaseKinds = [...]leaseKind{byPerson, byImport, byReplacement, byGeneration, byWork}
)

// id returns the ID of the lease for a key.
func (k leaseKind) id(key string) string {
	if k.plain {
		return k.prefix + key
	}
	return k.prefix + digest.FromString(key).Encoded()
}

// claim creates the lease of a kind for a key. It reports whether there was none.
func (s *Store) claim(ctx context.Context, k leaseKind, key string, labels ...map[string]string) (created bool, err error) {
	all := map[string]string{k.label: key}
	for _, more := range labels {
		maps.Copy(all, more)
	}
	opts := []leases.Opt{leases.WithID(k.id(key)), leases.WithLabels(all)}
	if k.ttl > 0 {
		opts = append(opts, leases.WithExpiration(k.ttl))
	}
	_, err = s.client.LeasesService().Create(ctx, opts...)
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return false, err
	}
	return err == nil, nil
}

// renew is claim with the whole time of the kind from now on.
func (s *Store) renew(ctx context.Context, k leaseKind, key string, labels ...map[string]string) error {
	if err := s.release(ctx, k, key); err != nil {
		return err
	}
	_, err := s.claim(ctx, k, key, labels...) // a concurrent import may have created it
	return err
}

// release deletes the lease of a kind for a key, if there is one.
func (s *Store) release(ctx context.Context, k leaseKind, key string, opts ...leases.DeleteOpt) error {
	err := s.client.LeasesService().Delete(ctx, leases.Lease{ID: k.id(key)}, opts...)
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// hold returns a lease that keeps content until free is called, or until the next daemon starts.
func (s *Store) hold(ctx context.Context) (l leases.Lease, free func() error, err error) {
	lm := s.client.LeasesService()
	l, err = lm.Create(ctx, leases.WithRandomID(), leases.WithExpiration(holdTTL))
	return l, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if err := lm.Delete(ctx, l); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	}, err
}

// claimed returns the leases of a kind, by key.
func (s *Store) claimed(ctx context.Context, k leaseKind) (map[string]leases.Lease, error) {
	list, err := s.client.LeasesService().List(ctx, fmt.Sprintf("labels.%q", k.label))
	if err != nil {
		return nil, err
	}
	found := map[string]leases.Lease{}
	for _, l := range list {
		if key := l.Labels[k.label]; l.ID == k.id(key) {
			found[key] = l
		}
	}
	return found, nil
}
