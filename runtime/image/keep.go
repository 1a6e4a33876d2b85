package image

import (
	"context"
	"maps"
	"slices"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// contentResource is the type of content in a lease.
const contentResource = "content"

// Keep keeps the content and the unpacked layers of the images with these configurations for a pod, whatever their names refer to, until
// the next call for the pod. Without configurations it releases the images. An image that is not present is skipped. If nothing changes,
// nothing is written. It returns true if it has released content, which the next garbage collection deletes unless something else refers to
// it.
func (s *Store) Keep(ctx context.Context, pod string, configs ...string) (released bool, err error) {
	unlock, err := s.kept.Lock(ctx, pod)
	if err != nil {
		return false, err
	}
	defer unlock()
	want, err := s.resourcesOf(ctx, configs)
	if err != nil {
		return false, err
	}
	lm, lease := s.client.LeasesService(), leases.Lease{ID: byGeneration.id(pod)}
	have, err := lm.ListResources(ctx, lease)
	exists := err == nil
	if err != nil && !errdefs.IsNotFound(err) {
		return false, err
	}
	if len(want) == 0 {
		if !exists {
			return false, nil
		}
		if err := s.release(ctx, byGeneration, pod); err != nil {
			return false, err
		}
		return true, nil
	}
	if !exists {
		if _, err := s.claim(ctx, byGeneration, pod); err != nil {
			return false, err
		}
	}
	return s.update(ctx, lease, have, want)
}

// update changes the content of a lease. It adds first, so that an interrupted call keeps too much.
func (s *Store) update(ctx context.Context, lease leases.Lease, have, want []leases.Resource) (released bool, err error) {
	lm := s.client.LeasesService()
	for _, r := range want {
		if slices.Contains(have, r) {
			continue
		}
		if err := lm.AddResource(ctx, lease, r); err != nil {
			return released, err
		}
	}
	for _, r := range have {
		if slices.Contains(want, r) {
			continue
		}
		if err := lm.DeleteResource(ctx, lease, r); err != nil {
			return released, err
		}
		released = true
	}
	return released, nil
}

// resourcesOf returns the manifests of the images with these configurations. They refer to the rest. An image has several manifests if its
// layers were compressed in several ways.
func (s *Store) resourcesOf(ctx context.Context, configs []string) ([]leases.Resource, error) {
	var list []leases.Resource
	for _, config := range configs {
		if config == "" {
			continue
		}
		manifests, err := s.manifestsOf(ctx, config)
		if err != nil {
			return nil, err
		}
		for _, m := range manifests {
			if r := (leases.Resource{ID: m.Digest.String(), Type: contentResource}); !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// Kept returns the names of the pods for which images are kept, sorted.
func (s *Store) Kept(ctx context.Context) ([]string, error) {
	claimed, err := s.claimed(ctx, byGeneration)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(claimed)), nil
}

// configsIn returns the configurations of the images that a lease of [Store.Keep] keeps.
func (s *Store) configsIn(ctx context.Context, l leases.Lease) (configs []string, err error) {
	resources, err := s.client.LeasesService().ListResources(ctx, l)
	if err != nil && !errdefs.IsNotFound(err) {
		return nil, err
	}
	for _, r := range resources {
		config, err := s.configOf(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if config != "" && !slices.Contains(configs, config) {
			configs = append(configs, config)
		}
	}
	return configs, nil
}

// configOf returns the digest of the configuration that a manifest refers to; empty: the content is not present, or not a manifest.
func (s *Store) configOf(ctx context.Context, manifest string) (string, error) {
	i, err := s.client.ContentStore().Info(ctx, digest.Digest(manifest))
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	return i.Labels[labelConfig], err
}
