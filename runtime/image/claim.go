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

// Claim is why an image stays on the host: who needs it, which image it is, and until when.
type Claim struct {
	By Claimant
	// Who is the name of the pod, or the path of the archive in an image directory. It is empty for a person and an import.
	Who string
	// Image is the record of an image, or the digest of its configuration.
	Image string
	// Until is zero for a claim that holds until it is released.
	Until time.Time
}

// Claimant is a kind of claims.
type Claimant string

// Kinds of claims that this package knows.
const (
	Person     Claimant = "person"         // pulled or imported the image
	Import     Claimant = "import"         // of a bundle, whose pods may not exist yet
	Generation Claimant = "generation"     // of a pod, for a rollback
	Directory  Claimant = "imageDirectory" // has the image in an archive
)

// Kinds of claims that follow from the pods of the host. Nothing of them is stored.
const (
	RunningPod Claimant = "runningPod" // names the image, and is not at rest
	Pod        Claimant = "pod"        // names the image: a pod at rest, or a pod file
	Container  Claimant = "container"  // runs the image. Its name may refer to another image by now
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

// leaseKind is a kind of leases of this package. They outlive the daemon. Each has a key, such as the record of an image. The prefix and
// the label are a format: another version of the daemon must find what this one has written.
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
	// byImport keeps an image of [Store.Import] without keep until a pod uses it. The key is the record.
	byImport = leaseKind{prefix: "podstead-imported-", label: "podstead.io/imported", ttl: importedTTL}
	// byReplacement keeps the image that [Store.Import] without keep has replaced, with its content. The key is the record.
	byReplacement = leaseKind{prefix: "podstead-replaced-", label: "podstead.io/replaced", ttl: importedTTL}
	// byGeneration keeps the images of [Store.Keep], with their manifests. The key is the name of the pod.
	byGeneration = leaseKind{prefix: "podstead-kept-images-", label: "podstead.io/kept-images", plain: true}
	// byWork keeps what is not part of an image yet. The key is the kind of work, and a name, a digest or an archive. The next work with
	// this key takes the lease over.
	byWork = leaseKind{prefix: "podstead-image-", label: "podstead.io/image-work", ttl: partialTTL}

	leaseKinds = [...]leaseKind{byPerson, byImport, byReplacement, byGeneration, byWork}
)

// key returns the key of a lease of this kind; empty: it is of another kind.
func (k leaseKind) key(l leases.Lease) string {
	if key := l.Labels[k.label]; l.ID == k.id(key) {
		return key
	}
	return ""
}

// id returns the ID of the lease for a key.
func (k leaseKind) id(key string) string {
	if k.plain {
		return k.prefix + key
	}
	return k.prefix + digest.FromString(key).Encoded()
}

// Claims returns the claims on images that are stored, and those of the archives that are in the image directories now. The images of some
// may not exist. One whose time is over may be among them.
func (s *Store) Claims(ctx context.Context) ([]Claim, error) {
	list, err := s.client.LeasesService().List(ctx)
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, l := range list {
		if record := byPerson.key(l); record != "" {
			claims = append(claims, Claim{By: Person, Image: record})
		}
		if record := byImport.key(l); record != "" {
			if until, err := time.Parse(time.RFC3339, l.Labels[labelExpire]); err == nil {
				claims = append(claims, Claim{By: Import, Image: record, Until: until})
			}
		}
		if pod := byGeneration.key(l); pod != "" {
			configs, err := s.configsIn(ctx, l)
			if err != nil {
				return nil, err
			}
			for _, config := range configs {
				claims = append(claims, Claim{By: Generation, Who: pod, Image: config})
			}
		}
	}
	records, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, err
	}
	for record, path := range heldBy(records, s.files.now()) {
		claims = append(claims, Claim{By: Directory, Who: path, Image: record})
	}
	return claims, nil
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

// renewPerson claims an image for a person, so that a removal that has begun before sees it, see [Store.ForgetUnless]. It reports whether
// the image is still there.
func (s *Store) renewPerson(ctx context.Context, record string) (kept bool, err error) {
	s.persons.Lock()
	defer s.persons.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout) // not between release and claim
	defer cancel()
	if err := s.renew(ctx, byPerson, record); err != nil {
		return false, err
	}
	_, err = s.client.ImageService().Get(ctx, record)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
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
		if key := k.key(l); key != "" {
			found[key] = l
		}
	}
	return found, nil
}
