package hostile

// imageRows returns the rows of hostile images. The container is in a pod that lists the image or its archive.
func imageRows() []Row {
	return []Row{
		{
			"list an image whose index, manifest or configuration is padded, larger than in its descriptor, or has a million entries",
			"is refused: at most 8 MiB and 131,072 values each, 64 MiB in all",
			"no such limits", "at most 4 MiB for the manifest of a pull", "TestHostileImages",
		},
		{
			"list an image with nested indexes, thousands of manifests, or 200 layers",
			"is refused: at most 4 levels, 1000 manifests, 128 layers",
			"at most 127 layers", "no limits", "TestHostileImages",
		},
		{
			"list an image whose descriptors have negative sizes, exabytes, embedded documents, or paths as digests", "is refused",
			"", "", "TestHostileImages",
		},
		{
			"list an image that is a decompression bomb: zstd, gzip, sparse files, extended attributes",
			"is refused at `images.maxUnpackedSize` or half of the free disk; nothing remains",
			"no limit", "no limit", "TestHostileImages",
		},
		{
			"exhaust the memory of the daemon with an image whose zstd frames need a large window",
			"is refused: the window may have at most 32 MiB",
			"no limit", "no limit", "TestHostileImages",
		},
		{
			"list an archive that is a decompression bomb", "is refused, as above",
			"no limit", "has no archives", "TestHostileImages",
		},
		{
			"list an archive that contains an image with the name of another pod's image",
			"only pods that list the archive use it, with the event `ImageShadowed`",
			"replaces the image for everybody", "has no archives", "TestImagePoisoning",
		},
		{
			"replace the image of a pod that runs", "cannot: a restart uses the same image",
			"", "", "TestImagePoisoning",
		},
		{
			"keep other pods from starting with a registry that sends a byte from time to time",
			"cannot: slow pulls do not count as parallel pulls after 10 s, and fail below 1 KiB/s",
			"pulls at most 3 layers of each image in parallel", "can, with `serializeImagePulls`", "TestSlowRegistries",
		},
	}
}
