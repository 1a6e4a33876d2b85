package image

import "context"

// Protected returns images that must not be removed although no pod uses them, such as those of image directories. The keys are full names
// of images, or digests of their manifests, indexes or configurations. The values are the reasons, such as a path.
type Protected func(ctx context.Context) (map[string]string, error)
