package api

import (
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
)

// Image is a name of an image of this host, with what uses it.
type Image struct {
	// Name is the full name: docker.io/library/busybox:1.36.
	Name string `json:"name"`
	// Digest is that of the manifest or index that the name refers to.
	Digest string `json:"digest"`
	// ID is the digest of the image's configuration, as imageID in the status of containers. It is empty if content is missing.
	ID string `json:"id,omitempty"`
	// Platform is such as linux/amd64. It is empty if content is missing.
	Platform string `json:"platform,omitempty"`
	// Size is the size of the compressed content in bytes.
	Size int64 `json:"size"`
	// CreatedAt is the time when the name was created on this host.
	CreatedAt time.Time `json:"createdAt"`
	// Pods are the pods whose definition names the image, sorted. They may not be running.
	Pods []string `json:"pods,omitempty"`
	// Running are those of them that are not at rest.
	Running []string `json:"running,omitempty"`
	// Generations are the pods that keep a generation with the image for a rollback.
	Generations []string `json:"generations,omitempty"`
	// Requested is [ImagePulled] or [ImageImported] if a person has requested the image. Otherwise it is empty.
	Requested string `json:"requested,omitempty"`
	// File is the archive in an image directory that has the image, which is kept until the archive is removed; empty: none.
	File string `json:"file,omitempty"`
	// Archive is true if the image is from the imageArchives of a pod. Only pods that list the archive see the name.
	Archive bool `json:"archive,omitempty"`
	// Foreign is true if the image is for another platform than that of the host. Pods do not see the name.
	Foreign bool `json:"foreign,omitempty"`
	// Damaged is true if content is missing.
	Damaged bool `json:"damaged,omitempty"`
	// Verification is [ImageVerified] or [ImageUnverified] if images.verify requires a signature or rejects the image. Otherwise it is
	// empty.
	Verification string `json:"verification,omitempty"`
	// VerifiedBy is the file with the key that has signed the image.
	VerifiedBy string `json:"verifiedBy,omitempty"`
}

// What is known about the signature of an [Image] that must be signed. An image that is unverified is verified before it is used.
const (
	ImageVerified   = "verified"
	ImageUnverified = "unverified"
)

// How a person has requested an [Image].
const (
	ImagePulled   = "pulled"
	ImageImported = "imported"
)

// Used reports whether the image is named by a pod, kept for a rollback, or in an archive of an image directory.
func (i *Image) Used() bool { return len(i.Pods) > 0 || len(i.Generations) > 0 || i.File != "" }

// ImageList is a list of images.
type ImageList struct {
	Items []Image `json:"items"`
}

// ImageDetail is an image with its configuration.
type ImageDetail struct {
	Image
	// Platforms are those in the index of the image.
	Platforms []string          `json:"platforms"`
	Author    string            `json:"author,omitempty"`
	Created   *time.Time        `json:"created,omitempty"` // when the image was built
	Labels    map[string]string `json:"labels,omitempty"`
	Config    ImageConfig       `json:"config"`
	Layers    []ImageLayer      `json:"layers"`
	History   []ImageHistory    `json:"history,omitempty"`
	// Programs are the paths of the programs that the request names; empty: the image does not have it. It is missing if the image is not
	// unpacked on this host.
	Programs map[string]string `json:"programs,omitempty"`
	// SearchPath has the directories in which containers of the image find programs, if the request names programs.
	SearchPath []string `json:"searchPath,omitempty"`
}

// ImageConfig is what an image sets for its containers.
type ImageConfig struct {
	User         string   `json:"user,omitempty"`
	Env          []string `json:"env,omitempty"`
	Entrypoint   []string `json:"entrypoint,omitempty"`
	Cmd          []string `json:"cmd,omitempty"`
	WorkingDir   string   `json:"workingDir,omitempty"`
	ExposedPorts []string `json:"exposedPorts,omitempty"`
	Volumes      []string `json:"volumes,omitempty"`
	StopSignal   string   `json:"stopSignal,omitempty"`
}

// ImageLayer is a compressed layer of an image.
type ImageLayer struct {
	Digest    string `json:"digest"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// ImageHistory is a step of the build of an image, the oldest first.
type ImageHistory struct {
	Created   *time.Time `json:"created,omitempty"`
	CreatedBy string     `json:"createdBy,omitempty"`
	Comment   string     `json:"comment,omitempty"`
	// Size is that of the compressed layer that the step added; 0: none.
	Size int64 `json:"size"`
}

// PullRequest requests the pull of an image.
type PullRequest struct {
	Name string `json:"name"`
	// Platform is such as linux/arm64; empty: that of the host.
	Platform string `json:"platform,omitempty"`
	// Policy is Always or IfNotPresent; empty: Always.
	Policy spec.PullPolicy `json:"policy,omitempty"`
}

// LoginRequest requests that credentials for a registry are checked and saved.
type LoginRequest struct {
	// Registry is HOST or HOST:PORT.
	Registry string `json:"registry"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// LogoutRequest requests that the credentials for a registry are deleted.
type LogoutRequest struct {
	// Registry is HOST or HOST:PORT.
	Registry string `json:"registry"`
}

// Registry is a registry to which a user logged in or out.
type Registry struct {
	// Name is HOST or HOST:PORT.
	Name string `json:"name"`
}

// ImageSignatures are the signatures of an image.
type ImageSignatures struct {
	// Items are sigstore bundles, or objects with Base64Signature and Payload as cosign download signature prints them.
	Items []string `json:"items"`
}

// RestoredImage reports whether the name of an image refers to another image now.
type RestoredImage struct {
	Restored bool `json:"restored"`
}

// PullProgress is the progress of a pull. It is zero until the registry has sent the manifest.
type PullProgress struct {
	Done        int64 `json:"done"` // bytes
	Total       int64 `json:"total"`
	Layers      int   `json:"layers"` // complete ones
	TotalLayers int   `json:"totalLayers"`
	// Unpacking is true when everything is fetched. Total is then the size of the compressed layers that have to be unpacked, and Done is
	// how much of them was.
	Unpacking bool `json:"unpacking,omitempty"`
}

// PullUpdate is a value of the stream of a pull: a progress, an image or an error. The last one has the image or the error.
type PullUpdate struct {
	Progress *PullProgress `json:"progress,omitempty"`
	Image    *Image        `json:"image,omitempty"`
	// Pulled is true with an image for which a registry was contacted.
	Pulled bool   `json:"pulled,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// RemovedImages are the names of images that were removed.
type RemovedImages struct {
	Items []Image `json:"items"`
	// Freed is the size in bytes of the content and the unpacked layers that were deleted from disk. Other names, containers and
	// generations can keep what an image shares with them.
	Freed int64 `json:"freed"`
}

// JoinSignatures returns signatures as a request to import images has them.
func JoinSignatures(signatures []string) string { return strings.Join(signatures, "\n") }
