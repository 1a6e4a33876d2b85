package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
)

const (
	// simpleSigning is the type of the layers of cosign's signatures, and signatureAnnotation has their signature.
	simpleSigning       = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	// cosignArtifact is the type of a referrer with such layers.
	cosignArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json"
	// predicateAnnotation has the type of the statement in a referrer with a bundle.
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
	// signatureSuffix ends the tags of cosign's signatures: sha256-HEX.sig.
	signatureSuffix = ".sig"
	// maxSignatureManifest is the maximum size of a manifest with signatures. Their annotations may have certificates.
	maxSignatureManifest = 1 << 20
)

// pinned resolves an image to what was verified, so that no other content of the same tag is pulled.
type pinned struct {
	remotes.Resolver

	name   string
	target ocispec.Descriptor
}

// Resolve returns the target that was verified.
func (p pinned) Resolve(context.Context, string) (string, ocispec.Descriptor, error) {
	return p.name, p.target, nil
}

// pin returns a resolver for the pull of an image. If the image must be signed, its signature is verified before, and the resolver resolves
// to the content that is signed.
func (s *Store) pin(
	ctx context.Context, r remotes.Resolver, name string, platform platforms.MatchComparer,
) (remotes.Resolver, verdict, error) {
	rule, repo := s.rule(name)
	switch rule.Type {
	case signature.Accept:
		return r, verdict{}, nil
	case signature.Reject:
		return nil, verdict{}, rule.Refuse("")
	case signature.Signed:
	}
	ctx, cancel := s.signatureTimeout(ctx)
	defer cancel()
	resolved, target, err := r.Resolve(ctx, name)
	if err != nil {
		return nil, verdict{}, inTime(ctx, err)
	}
	v, err := s.approve(ctx, name, target, platform, &registrySource{resolver: r, rule: &rule, name: resolved, repo: repo})
	if err != nil {
		return nil, verdict{}, inTime(ctx, err)
	}
	return pinned{r, resolved, v.target}, v, nil
}

// verifyStored verifies an image of this host with the signatures in its registry. It uses the credentials of a pull.
func (s *Store) verifyStored(ctx context.Context, name string, ring *credentials.Keyring,
	target ocispec.Descriptor,
) (v verdict, err error) {
	m := &meter{}
	release, err := s.pulls.hold(ctx, m)
	if err != nil {
		return verdict{}, err
	}
	defer release()
	ctx, cancel := s.signatureTimeout(ctx)
	defer cancel()
	rule, repo := s.rule(name)
	a := &access{store: s, name: name, ring: ring, meter: m}
	err = a.try(ctx, func(r remotes.Resolver) (err error) {
		v, err = s.approve(ctx, name, target, s.platform,
			&storedSource{registrySource{resolver: r, rule: &rule, name: name, repo: repo}, s})
		return err
	})
	if err != nil {
		return v, inTime(ctx, err)
	}
	return v, s.remember(ctx, &v, s.platform)
}

// signatureTimeout bounds the time for all signatures of an image.
func (s *Store) signatureTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	cause := fmt.Errorf("the registry did not deliver the signatures within %v", s.opts.RateWindow)
	return context.WithTimeoutCause(ctx, s.opts.RateWindow, cause)
}

// inTime returns the cause of a timeout instead of the error that it has caused.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// registrySource has the signatures of an image in its registry: at the tag that cosign derives from the digest, and as OCI referrers.
type registrySource struct {
	resolver remotes.Resolver
	rule     *signature.Rule
	name     string // full
	repo     string
	total    int64 // bytes that were read
}

func (f *registrySource) document(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	fetcher, err := f.resolver.Fetcher(ctx, f.name)
	if err != nil {
		return nil, err
	}
	data, err := f.fetch(ctx, fetcher, d, maxDocument)
	if err != nil && !signature.Refused(err) {
		err = fmt.Errorf("fetch %s: %w", d.Digest, err)
	}
	return data, err
}

func (f *registrySource) signatures(ctx context.Context, d ocispec.Descriptor,
	place int,
) (list []signature.Signature, more bool, err error) {
	find := f.tagged
	if place > 0 {
		find = f.referrers
	}
	manifests, fetcher, err := find(ctx, d.Digest)
	for i := 0; err == nil && i < len(manifests); i++ {
		var some []signature.Signature
		if some, err = f.read(ctx, fetcher, manifests[i]); err == nil {
			list = append(list, some...)
		}
	}
	if err != nil && !signature.Refused(err) {
		err = fmt.Errorf("fetch signatures of %s: %w", d.Digest, err)
	}
	return list, place == 0, err
}

// tagged returns the manifest at cosign's tag for a digest, if there is one.
func (f *registrySource) tagged(ctx context.Context, d digest.Digest) ([]ocispec.Descriptor, remotes.Fetcher, error) {
	ref := f.repo + ":" + strings.Replace(d.String(), ":", "-", 1) + signatureSuffix
	name, found, err := f.resolver.Resolve(ctx, ref)
	if errdefs.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	fetcher, err := f.resolver.Fetcher(ctx, name)
	return []ocispec.Descriptor{found}, fetcher, err
}

// referrers returns the manifests with signatures that refer to a digest.
func (f *registrySource) referrers(ctx context.Context, d digest.Digest) ([]ocispec.Descriptor, remotes.Fetcher, error) {
	fetcher, err := f.resolver.Fetcher(ctx, f.name)
	if err != nil {
		return nil, nil, err
	}
	referrers, ok := fetcher.(remotes.ReferrersFetcher)
	if !ok {
		return nil, nil, nil
	}
	all, err := referrers.FetchReferrers(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	var list []ocispec.Descriptor
	for _, r := range all {
		if isSignature(r) {
			list = append(list, r)
		}
	}
	if len(list) > signature.MaxSignatures {
		return nil, nil, f.rule.Refuse("%s has more than %d signatures", d, signature.MaxSignatures)
	}
	return list, fetcher, nil
}

// isSignature reports whether a descriptor of a manifest may be that of a signature, and not of an attestation.
func isSignature(d ocispec.Descriptor) bool {
	predicate := d.Annotations[predicateAnnotation]
	return (strings.HasPrefix(d.ArtifactType, signature.BundleType) || d.ArtifactType == cosignArtifact) &&
		(predicate == "" || predicate == signature.SignPredicate)
}

// read returns the signatures in the layers of a manifest.
func (f *registrySource) read(ctx context.Context, fetcher remotes.Fetcher, d ocispec.Descriptor) ([]signature.Signature, error) {
	data, err := f.fetch(ctx, fetcher, d, maxSignatureManifest)
	if err != nil {
		return nil, err
	}
	return readSignatures(data, f.rule, func(l ocispec.Descriptor, limit int64) ([]byte, error) { return f.fetch(ctx, fetcher, l, limit) })
}

// readSignatures returns the signatures in the layers of a manifest. Layers of other types are skipped.
func readSignatures(
	manifest []byte, rule *signature.Rule, fetch func(layer ocispec.Descriptor, limit int64) ([]byte, error),
) (list []signature.Signature, err error) {
	var m ocispec.Manifest
	if err := checkDocument("manifest", int64(len(manifest)), bytes.NewReader(manifest)); err != nil {
		return nil, rule.Refuse("manifest of a signature is malformed: %v", err)
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, rule.Refuse("manifest of a signature is malformed: %v", err)
	}
	if len(m.Layers) > signature.MaxSignatures {
		return nil, rule.Refuse("manifest of a signature has %d layers, the limit is %d", len(m.Layers), signature.MaxSignatures)
	}
	fetched := map[digest.Digest][]byte{} // all signatures of cosign may have the same payload
	for _, l := range m.Layers {
		limit := int64(signature.MaxPayload)
		isBundle := strings.HasPrefix(l.MediaType, signature.BundleType)
		switch {
		case isBundle:
			limit = signature.MaxBundle
		case l.MediaType != simpleSigning:
			continue
		}
		data, ok := fetched[l.Digest]
		if !ok {
			if data, err = fetch(l, limit); err != nil {
				return nil, err
			}
			fetched[l.Digest] = data
		}
		if isBundle {
			list = append(list, signature.Signature{Bundle: data})
		} else {
			list = append(list, signature.Signature{Payload: data, Base64: l.Annotations[signatureAnnotation]})
		}
	}
	return list, nil
}

// fetch returns content that matches its descriptor.
func (f *registrySource) fetch(ctx context.Context, fetcher remotes.Fetcher, d ocispec.Descriptor, limit int64) ([]byte, error) {
	if err := checkSize(d, limit, &f.total, f.rule); err != nil {
		return nil, err
	}
	r, err := fetcher.Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, d.Size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != d.Size || d.Digest.Algorithm().FromBytes(data) != d.Digest {
		return nil, f.rule.Refuse("signature is malformed: %s does not match its digest", d.Digest)
	}
	return data, nil
}

// checkSize checks a descriptor before its content is read into memory, and adds its size to the total of an image.
func checkSize(d ocispec.Descriptor, limit int64, total *int64, rule *signature.Rule) error {
	if err := d.Digest.Validate(); err != nil {
		return rule.Refuse("signature is malformed: digest %q: %v", d.Digest, err)
	}
	if d.Size < 0 || d.Size > limit {
		return rule.Refuse("signature is malformed: %s has %d bytes, the limit is %d", d.Digest, d.Size, limit)
	}
	if *total += d.Size; *total > 2*maxDocument {
		return rule.Refuse("signatures have more than %d bytes", 2*maxDocument)
	}
	return nil
}

// storedSource is a registrySource whose documents are on this host.
type storedSource struct {
	registrySource

	store *Store
}

func (f *storedSource) document(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	return f.store.readStored(ctx, d)
}
