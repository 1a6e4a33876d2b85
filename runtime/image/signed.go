package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/signature"
)

// labelSigned starts the labels of content that a key has signed. The rest identifies the key and the repository. The labels are on the
// content and not on the record of the image: they hold for the digest, and are deleted with it.
const labelSigned = "podstead.io/signed-"

// Verification is what the policy for signatures says about an image of this host.
type Verification struct {
	// Required is true if the image must be signed, or is rejected.
	Required bool
	// Key is the name of the key of the policy that has signed the image. It is empty if none has, or if that was not verified yet.
	Key string
}

// SetVerification sets which images must be signed; nil: none. It holds for images that are used from now on. Containers keep running.
func (s *Store) SetVerification(p *signature.Policy) { s.policy.Store(p) }

// rule returns the policy for an image, and its repository.
func (s *Store) rule(name string) (rule signature.Rule, repo string) {
	repo, _ = repository(name)
	return s.policy.Load().For(repo), repo
}

// verdict says that a key has signed an index or a manifest under the name of a repository. The zero value says that no signature is
// required.
type verdict struct {
	target ocispec.Descriptor
	key    signature.Key
	repo   string
}

// source has the signatures of images: a registry or an archive.
type source interface {
	// document returns an index or a manifest that matches its digest.
	document(ctx context.Context, d ocispec.Descriptor) ([]byte, error)
	// signatures returns those at a place, and whether there are more places.
	signatures(ctx context.Context, d ocispec.Descriptor, place int) (list []signature.Signature, more bool, err error)
}

// approve checks that the target of a name is signed, if that is required. If the target is an index without a valid signature, its
// manifest for the platform may be signed instead: then only that is approved.
func (s *Store) approve(
	ctx context.Context, name string, target ocispec.Descriptor, platform platforms.MatchComparer, from source,
) (verdict, error) {
	rule, repo := s.rule(name)
	switch rule.Type {
	case signature.Accept:
		return verdict{target: target}, nil
	case signature.Reject:
		return verdict{}, rule.Refuse("")
	case signature.Signed:
	}
	var cause error
	for depth := 0; ; depth++ {
		if key, ok := s.remembered(ctx, target.Digest, repo, &rule); ok {
			return verdict{target, key, repo}, nil
		}
		document, err := from.document(ctx, target)
		if err != nil {
			return verdict{}, err
		}
		key, found, err := verifyAt(ctx, &rule, &signature.Subject{Repository: repo, Digest: target.Digest, Content: document}, target,
			from)
		if err == nil {
			return verdict{target, key, repo}, nil
		}
		if !signature.Refused(err) {
			return verdict{}, err
		}
		if cause == nil || found {
			cause = err
		}
		next, ok := childFor(document, target, platform)
		if !ok || depth >= maxDepth {
			return verdict{}, cause
		}
		target = next
	}
}

// verifyAt verifies the signatures of one descriptor. It asks for those at a further place only if they are needed. found reports whether
// there was a signature.
func verifyAt(
	ctx context.Context, rule *signature.Rule, subject *signature.Subject, target ocispec.Descriptor, from source,
) (key signature.Key, found bool, err error) {
	var all []signature.Signature
	var failed []error
	for place, more := 0, true; more; place++ {
		var list []signature.Signature
		if list, more, err = from.signatures(ctx, target, place); err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, list...)
		if len(list) == 0 && more {
			continue
		}
		if key, err = rule.Verify(subject, all); err == nil {
			return key, true, nil
		}
	}
	if len(failed) > 0 { // a valid signature may be there
		return key, true, errors.Join(failed...)
	}
	return key, len(all) > 0, err
}

// childFor returns the best descriptor for a platform in an index.
func childFor(document []byte, target ocispec.Descriptor, platform platforms.MatchComparer) (ocispec.Descriptor, bool) {
	var index ocispec.Index
	if !images.IsIndexType(target.MediaType) || checkDocument("index", int64(len(document)), bytes.NewReader(document)) != nil ||
		json.Unmarshal(document, &index) != nil {
		return ocispec.Descriptor{}, false
	}
	list := slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Platform == nil || !platform.Match(*d.Platform) || d.Digest.Validate() != nil
	})
	if len(list) == 0 {
		return ocispec.Descriptor{}, false
	}
	return slices.MinFunc(list, byPlatform(platform)), true
}

// signedLabel is the label for a key and a repository.
func signedLabel(key *signature.Key, repo string) string {
	return labelSigned + fmt.Sprintf("%x", sha256.Sum256([]byte(key.ID+"\x00"+repo)))[:32]
}

// remember records a verdict at the content that it is about. The signature of an index holds for its manifests.
func (s *Store) remember(ctx context.Context, v *verdict, platform platforms.MatchComparer) error {
	if v.key.ID == "" {
		return nil
	}
	signed := []digest.Digest{v.target.Digest}
	if manifest, err := s.manifestFor(ctx, v.target, platform, 0); err == nil && manifest.Digest != v.target.Digest {
		signed = append(signed, manifest.Digest)
	}
	label := signedLabel(&v.key, v.repo)
	for _, d := range signed {
		info := content.Info{Digest: d, Labels: map[string]string{label: v.repo + " " + v.key.ID}}
		if _, err := s.content.Update(ctx, info, "labels."+label); err != nil {
			return err
		}
	}
	return nil
}

// remembered returns the key of the rule that is known to have signed content.
func (s *Store) remembered(ctx context.Context, d digest.Digest, repo string, rule *signature.Rule) (signature.Key, bool) {
	info, err := s.content.Info(ctx, d)
	if err != nil { // it is verified again
		return signature.Key{}, false
	}
	for i := range rule.Keys {
		if _, ok := info.Labels[signedLabel(&rule.Keys[i], repo)]; ok {
			return rule.Keys[i], true
		}
	}
	return signature.Key{}, false
}

// verification returns what is known about an image without a request.
func (s *Store) verification(ctx context.Context, rec images.Image) Verification {
	rule, repo := s.rule(nameOf(rec.Name))
	if rule.Type == signature.Accept {
		return Verification{}
	}
	key, _ := s.remembered(ctx, rec.Target.Digest, repo, &rule)
	return Verification{Required: true, Key: key.Name}
}

// admitted reports whether an image may be used as far as is known without a request.
func (s *Store) admitted(ctx context.Context, rec images.Image) bool {
	v := s.verification(ctx, rec)
	return !v.Required || v.Key != ""
}

// nameOf returns the name of an image without the prefix of its record.
func nameOf(record string) string {
	name, _ := foreignName(imageName(record))
	return name
}

// admit checks an image of this host before it is used. An image that was stored before it had to be signed is verified with the signatures
// in the registry of its name. It returns the record, whose target may have changed from an index to its manifest that is signed. The error
// is an [*Error], or that of ctx.
func (s Scope) admit(ctx context.Context, rec images.Image) (images.Image, error) {
	if s.admitted(ctx, rec) {
		return rec, nil
	}
	name := nameOf(rec.Name)
	rule, _ := s.rule(name)
	if _, archived := rec.Labels[labelArchive]; archived && rule.Type == signature.Signed {
		err := rule.Refuse("no signature of %s found, import the archive again with its signature", rec.Target.Digest)
		return rec, fail(ctx, ReasonSignature, "verify image", name, err)
	}
	ring, _, missingErr := s.keyring()
	verify := func(ctx context.Context, _ func(Progress)) (Image, error) {
		v, err := s.verifyStored(ctx, name, ring, rec.Target)
		return Image{Target: v.target}, err
	}
	img, err := s.flights.do(ctx, "verify "+name+"@"+rec.Target.Digest.String()+keyOf(ring, name), verify, nil)
	if err != nil && missingErr != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w (%w)", err, missingErr)
	}
	if err != nil {
		return rec, fail(ctx, ReasonPull, "verify image", name, err)
	}
	if img.Target.Digest == rec.Target.Digest {
		return rec, nil
	}
	rec.Target = img.Target
	updated, err := s.client.ImageService().Update(ctx, rec, "target")
	if err != nil && !errdefs.IsNotFound(err) { // the image of a previous run may have no name
		return rec, fail(ctx, ReasonInspect, "verify image", name, err)
	}
	if err == nil {
		rec = updated
	}
	return rec, nil
}
