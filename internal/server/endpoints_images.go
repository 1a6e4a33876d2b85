package server

import (
	"strconv"

	"github.com/podstead/podstead/api"
)

var (
	imageName = Parameter{Name: "name", Type: Text, Description: "Name of the image. Required."}
	whileUsed = Parameter{
		Name: "whileUsed", Type: Boolean,
		Description: "Keep the images only while a pod or a generation uses them, but at least for an hour.",
	}
	imagePlatform = Parameter{Name: "platform", Type: Text, Description: "Platform, such as linux/arm64. Default: any."}

	signatureBytes = Parameter{
		Name: api.SignatureBytes, Type: Integer,
		Description: "Size of the signatures at the start of the body, before the archive. Default: 0. They are a sequence of " +
			"JSON values: " +
			"sigstore bundles, and objects with Base64Signature and Payload as cosign download signature prints them.",
	}
	imageSignature = Parameter{
		Name: "signature", Type: Text, Repeated: true,
		Description: "A further signature, for clients that send them in the URL, which has a maximum size.",
	}
)

func imageEndpoints() []Endpoint {
	return append(carriedEndpoints(), []Endpoint{
		{
			Method: "GET", Path: "/v1/images", Summary: "List the images of the host with what uses them, sorted by name",
			Response: api.ImageList{}, Reasons: []api.ErrorReason{api.ReasonNotImplemented},
			call: imageCall((*Server).images),
		},
		{
			Method: "GET", Path: "/v1/images/inspect",
			Summary: "Get an image with its configuration, layers and history",
			Query: []Parameter{imageName, imagePlatform, {
				Name: "program", Type: Text, Repeated: true,
				Description: "Name or absolute path of a program that the image may have. At most " + strconv.Itoa(maxPrograms) + ".",
			}},
			Response: api.ImageDetail{},
			Reasons:  []api.ErrorReason{api.ReasonNotFound, api.ReasonNotImplemented},
			call:     imageCall((*Server).inspectImage),
		},
		{
			Method: "POST", Path: "/v1/images/pull",
			Summary: "Pull an image",
			Details: "The stream has the progress, and then the image or the error. The pull ends with the connection.",
			Request: api.PullRequest{}, Stream: api.PullUpdate{},
			Reasons: []api.ErrorReason{api.ReasonBadGateway, api.ReasonConflict, api.ReasonNotImplemented},
			serve:   imageStream((*Server).pullImage),
		},
		{
			Method: "POST", Path: "/v1/images/import",
			Summary: "Import an image archive in the OCI or Docker layout, which may be compressed",
			Details: "The body has no maximum size. The request ends when no bytes arrive for " + importTimeout.String() + ".",
			Query:   []Parameter{whileUsed, signatureBytes, imageSignature},
			Body:    api.TarContent, Response: api.ImageList{}, Reasons: []api.ErrorReason{api.ReasonBadGateway, api.ReasonNotImplemented},
			serve: imageStream((*Server).importImages),
		},
		{
			Method: "GET", Path: "/v1/images/export",
			Summary: "Export images as an archive in the OCI layout, which is also in the Docker layout",
			Details: "After an error in the archive, the connection is closed.",
			Query: []Parameter{
				{Name: "name", Type: Text, Repeated: true, Description: "Name of an image. At least one is required."}, imagePlatform,
			},
			Content: api.TarContent, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict, api.ReasonNotImplemented},
			serve: imageStream((*Server).exportImages),
		},
		{
			Method: "DELETE", Path: "/v1/images",
			Summary: "Remove a name of an image",
			Details: "An image that a pod or a generation uses is not removed.",
			Query: []Parameter{
				imageName, imagePlatform,
				{Name: "force", Type: Boolean, Description: "Remove the name unless a pod that uses it is running."},
			},
			Response: api.RemovedImages{}, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict, api.ReasonNotImplemented},
			call: imageCall((*Server).removeImage), limit: api.RemovalTimeout,
		},
		{
			Method: "POST", Path: "/v1/images/prune",
			Summary: "Remove the images that nothing uses",
			Details: "An error has the names that were removed before it.",
			Query: []Parameter{
				{Name: "all", Type: Boolean, Description: "Remove also images that a person has requested."},
				{Name: "dryRun", Type: Boolean, Description: "Remove nothing."},
			},
			Response: api.RemovedImages{}, Reasons: []api.ErrorReason{api.ReasonNotImplemented},
			call: imageCall((*Server).pruneImages), limit: api.RemovalTimeout,
		},
	}...)
}

// carriedEndpoints are those for images in bundles.
func carriedEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/images/signatures",
			Summary: "Get the signatures that the registry of a pulled image has",
			Details: "The signatures are not verified. They are for the import of an archive that has the image. An imported image " +
				"has none.",
			Query: []Parameter{imageName, imagePlatform}, Response: api.ImageSignatures{},
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonBadGateway, api.ReasonNotImplemented},
			call:    imageCall((*Server).imageSignatures), limit: api.LoginTimeout,
		},
		{
			Method: "POST", Path: "/v1/images/restore",
			Summary: "Make the name of an image refer again to the image before an import with whileUsed",
			Details: "Nothing is changed if nothing was replaced, if the name has been changed since, or if the earlier image is not on " +
				"the host any more. It is kept for an hour.",
			Query:    []Parameter{imageName, {Name: "after", Type: Timestamp, Description: "Time before the import. Required."}},
			Response: api.RestoredImage{}, Reasons: []api.ErrorReason{api.ReasonNotImplemented},
			call: imageCall((*Server).restoreImage),
		},
	}
}

func registryEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "POST", Path: "/v1/registries/login",
			Summary: "Check credentials with a registry, and save them on the host",
			Details: "A registry that requires no authentication accepts any. The response has the normalized name of the registry.",
			Request: api.LoginRequest{}, Response: api.Registry{},
			Reasons: []api.ErrorReason{api.ReasonForbidden, api.ReasonBadGateway, api.ReasonNotImplemented},
			call:    imageCall((*Server).login), limit: api.LoginTimeout,
		},
		{
			Method: "POST", Path: "/v1/registries/logout",
			Summary: "Delete the credentials for a registry from the host",
			Request: api.LogoutRequest{}, Response: api.Registry{},
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonNotImplemented},
			call:    imageCall((*Server).logout), limit: api.LoginTimeout,
		},
	}
}
