package explain

import (
	"fmt"

	"github.com/podstead/podstead/api"
)

// creating is what the first start of a container waits for: its image, or its creation.
func (b *builder) creating(c *api.ExplainedContainer) *api.Cause {
	p, fetched := b.snapshot.Pulling[c.Name]
	if !fetched || p.Image != "" {
		return b.newCause(c, api.CauseCreating)
	}
	cause := b.newCause(c, api.CauseImageImporting)
	cause.Progress = &api.Progress{Archive: p.Archive, Done: p.Done, Total: p.Total, Unpacking: p.Unpacking}
	if p.Archive == "" {
		cause.Kind, cause.Image = api.CauseImagePulling, b.image(c.Name)
	}
	return cause
}

// fetching is the progress of a pull or an import.
func fetching(c *api.Cause, subject string) string {
	text := fmt.Sprintf("%s is pulling image %q", subject, c.Image)
	progress := api.Progress{}
	if c.Progress != nil {
		progress = *c.Progress
	}
	switch {
	case progress.Unpacking:
		text = fmt.Sprintf("%s is unpacking image %q", subject, c.Image)
	case c.Kind == api.CauseImageImporting:
		text = fmt.Sprintf("%s is importing image archive %q", subject, progress.Archive)
	}
	if progress.Total > 0 {
		text += fmt.Sprintf(" (%s of %s)", Size(progress.Done), Size(progress.Total))
	}
	return text
}

// signatureHint is what a person can do about an image that is not signed as the policy requires.
const signatureHint = "sign the image with cosign sign --key, or change images.verify in podstead.toml and reload the daemon; the next " +
	"attempt verifies it again"

func imageFailed(c *api.Cause, subject string) string {
	switch c.Reason { //nolint:exhaustive // see default
	case api.ReasonErrImageNeverPull:
		return fmt.Sprintf("%s needs image %q, but it is not present and the pull policy is Never", subject, c.Image)
	case api.ReasonInvalidImageName:
		return fmt.Sprintf("%s has an invalid image name %q%s", subject, c.Image, because(c.Message))
	case api.ReasonSignatureValidation:
		return fmt.Sprintf("%s must not use image %q%s", subject, c.Image, because(c.Message))
	case api.ReasonImageInspectError:
		return fmt.Sprintf("%s cannot use image %q%s", subject, c.Image, because(c.Message))
	default:
		return fmt.Sprintf("%s cannot pull image %q%s", subject, c.Image, because(c.Message))
	}
}
