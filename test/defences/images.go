package main

// imageDefences are against hostile documents of images, from archives and from registries.
func imageDefences() []defence {
	const (
		pkg     = "./runtime/image"
		attacks = "TestAttacks"
		image   = "runtime/image"
	)
	return []defence{
		{"limit of the size of documents", []edit{constant(image, "maxDocument", "60 << 20")}, pkg, attacks, false, []attack{
			{
				"list an image whose index, manifest or configuration is padded", attacks + "/padded_configuration_from_an_archive",
				refusedElsewhere,
			},
			{"the same, from a registry", attacks + "/padded_configuration_from_a_registry", accepted},
			{"list an image whose manifest is padded", attacks + "/padded_manifest_from_an_archive", accepted},
			{
				"list an image whose configuration is larger than in its descriptor",
				attacks + "/configuration_that_is_larger_than_its_descriptor_says_from_an_archive", accepted,
			},
		}},
		{"limit of the values in documents", []edit{constant(image, "maxValues", "1 << 40")}, pkg, attacks, false, []attack{
			{"list an index of a million empty manifests", attacks + "/index_of_a_million_empty_manifests_from_an_archive", allocates},
			{"the same, from a registry", attacks + "/index_of_a_million_empty_manifests_from_a_registry", allocates},
		}},
		{"limit of the data in descriptors", []edit{constant(image, "maxInline", "4 << 30")}, pkg, attacks, false, []attack{
			{
				"list an image whose descriptors have negative sizes, exabytes, embedded documents",
				attacks + "/manifest_inside_of_a_descriptor_from_an_archive", refusedElsewhere,
			},
			{"the same, from a registry", attacks + "/manifest_inside_of_a_descriptor_from_a_registry", accepted},
		}},
		{"limit of the depth of indexes", []edit{constant(image, "maxDepth", "4000")}, pkg, attacks, false, []attack{
			{"list an image with nested indexes, thousands of manifests", attacks + "/300_nested_indexes_from_an_archive", accepted},
			{"the same, from a registry", attacks + "/300_nested_indexes_from_a_registry", accepted},
		}},
		{"limit of the depth of indexes", []edit{constant(image, "maxDepth", "4000")}, pkg, "TestDeepIndexesBlockNobody", false, []attack{
			{"keep other images from being imported by an archive with a deep index", "", "documents of the deep indexes were read"},
		}},
		{"limit of the manifests of an index", []edit{constant(image, "maxManifests", "100000")}, pkg, attacks, false, []attack{
			{"list an index of 1500 manifests", attacks + "/index_of_1500_manifests_from_an_archive", refusedElsewhere},
		}},
		{"limit of the layers", []edit{constant(image, "maxLayers", "12800")}, pkg, attacks, false, []attack{
			{"list an image with 200 layers", attacks + "/200_layers_from_an_archive", accepted},
			{"the same, from a registry", attacks + "/200_layers_from_a_registry", accepted},
		}},
		{
			"limit of the size of layers",
			[]edit{without(image, "budget.content", "size > b.limit-b.compressed")},
			pkg, attacks, false,
			[]attack{
				{"list an image with layers of exabytes", attacks + "/layers_of_exabytes_from_an_archive", refusedElsewhere},
				{"the same, from a registry", attacks + "/layers_of_exabytes_from_a_registry", remains},
			},
		},
		{"check of negative sizes", []edit{never(image, "tree.enter", "d.Size < 0")}, pkg, attacks, false, []attack{
			{"list an image whose descriptors have negative sizes", attacks + "/negative_size_from_an_archive", accepted},
			{"the same, from a registry", attacks + "/negative_size_from_a_registry", remains},
		}},
		{"check of digests", []edit{never(image, "tree.enter", "d.Digest.Validate()")}, pkg, attacks, false, []attack{
			{"list an image whose digest is a path", attacks + "/digest_that_is_a_path_from_an_archive", refusedElsewhere},
			{"the same, from a registry", attacks + "/digest_that_is_a_path_from_a_registry", remains},
		}},
		{
			"check of the type of configurations",
			[]edit{never(image, "tree.children", "images.IsLayerType(list[0].MediaType)")},
			pkg,
			attacks, false,
			[]attack{
				{
					"list an image whose configuration has the type of a layer",
					attacks + "/configuration_with_the_type_of_a_layer_from_an_archive", accepted,
				},
				{"the same, from a registry", attacks + "/configuration_with_the_type_of_a_layer_from_a_registry", remains},
			},
		},
	}
}

// unpackDefences are against images and archives that unpack to too much, and against endless answers.
func unpackDefences() []defence {
	const (
		pkg      = "./runtime/image"
		attacks  = "TestAttacks"
		archives = "TestArchiveAttacks"
		image    = "runtime/image"
	)
	return []defence{
		{"limit of the unpacked size", []edit{never(image, "budget.checkSize", "b.unpacked > b.limit")}, pkg, attacks, false, []attack{
			{"list an image that is a decompression bomb: zstd, gzip, sparse files", attacks + "/zstd_bomb_from_an_archive", unpacks},
			{"the same, from a registry", attacks + "/zstd_bomb_from_a_registry", unpacks},
			{"list an image that is a gzip bomb", attacks + "/gzip_bomb_from_a_registry", unpacks},
		}},
		{
			"limit of sparse files",
			[]edit{never(image, "budget.file", "h.Size > b.limit-b.unpacked"), without(image, "budget.file", "b.unpacked += h.Size")},
			pkg,
			attacks, false,
			[]attack{
				{"list an image with a sparse file of 4 TiB", attacks + "/sparse_file_of_4_TiB_from_a_registry", remains},
			},
		},
		{
			"wait for the check of each header",
			[]edit{replaced(image, "countedTar.Read", "c.copied.Write(nil)", "0, error(nil)")},
			pkg,
			"TestHoleIsRefusedBeforeItIsWritten", false,
			[]attack{
				{"list an image with a sparse file of 4 TiB that is refused only after it was written", "", "the reader got"},
			},
		},
		{
			"limit of the files of an image",
			[]edit{never(image, "budget.file", "b.files > maxFiles")},
			pkg, "TestBudgetOfLayers", false,
			[]attack{
				{"list an image with a million files", "TestBudgetOfLayers/one_more", accepted},
			},
		},
		{
			"limit of the compression ratio",
			[]edit{never(image, "budget.checkSize", "b.unpacked/maxRatio > b.compressed")},
			pkg,
			"TestBudgetOfLayers", false,
			[]attack{
				{"list an image of more than 1 GiB with a ratio of more than 200", "TestBudgetOfLayers/ratio_of_more_than_200", accepted},
			},
		},
		{"limit of names and attributes", []edit{never(image, "budget.file", "b.text > maxFileText")}, pkg, attacks, false, []attack{
			{"list an image with attributes of 24 MiB", attacks + "/attributes_of_24_MiB_from_an_archive", unpacks},
			{"the same, from a registry", attacks + "/attributes_of_24_MiB_from_a_registry", unpacks},
		}},
		{"limit of zstd windows", []edit{constant(image, "maxWindow", "512 << 20")}, pkg, attacks, false, []attack{
			{
				"exhaust the memory of the daemon with an image whose zstd frames need a large window",
				attacks + "/zstd_window_of_128_MiB_from_an_archive", unpacks,
			},
			{"the same, from a registry", attacks + "/zstd_window_of_128_MiB_from_a_registry", unpacks},
		}},
		{
			"limit of the unpacked size of archives",
			[]edit{never(image, "budget.checkSize", "b.unpacked > b.limit")},
			pkg, archives, false,
			[]attack{
				{"list an archive that is a decompression bomb", archives + "/compressed_zeros", refusedElsewhere},
			},
		},
		{"limits of what an archive contains", []edit{
			constant(image, "maxDocument", "60 << 20"),
			constant(image, "maxNames", "25600"),
			constant(image, "maxEntries", "20_000_000"),
			constant(image, "maxLayers", "12800"),
		}, pkg, archives, false, []attack{
			{"list an archive with a large index.json", archives + "/large_index.json", refusedElsewhere},
			{"list an archive with a large oci-layout", archives + "/large_oci-layout", refusedElsewhere},
			{"list an archive with a large manifest.json", archives + "/large_manifest.json", refusedElsewhere},
			{"list an archive with 20,001 files", archives + "/files", refusedElsewhere},
			{"list an archive with 201 layers in manifest.json", archives + "/layers_in_manifest.json", refusedElsewhere},
			{"list an archive with 301 names", archives + "/names", refusedElsewhere},
		}},
		{
			"limit of answers without a descriptor",
			[]edit{replaced(image, "documents.roundTrip", "left: maxDocument", "left: 400 << 20")},
			pkg, "TestEndlessAnswers", false,
			[]attack{
				{"pull from a registry that sends an endless token", "TestEndlessAnswers/token", allocates},
			},
		},
	}
}

// nameDefences are against images that claim to be others, and against registries that block others or refer to the host.
func nameDefences() []defence {
	const (
		pkg   = "./runtime/image"
		image = "runtime/image"
	)
	shared := replaced(image, "recordsOf", `fmt.Sprintf("%s%x/", recordPrefix, sha256.Sum256([]byte(path)))`, "$[:0]")
	again := always(image, "Scope.lookupAgain", `p.ConfigDigest == ""`)
	slow := replaced(image, "meter.watch", "int64(interval.Seconds() * float64(rate()))", "-$")
	local := always(image, "localGuard.check", "g.names.on(kind)")
	return []defence{
		{"names of archives are those of the pods that list them", []edit{shared}, pkg, "TestNamesOfArchives", false, []attack{
			{"use the name of another pod's image in an archive", "", `has version "other", want "genuine"`},
		}},
		{"a restart uses the same image", []edit{again}, pkg, "TestEnsureAgain", false, []attack{
			{"replace the image of a pod that runs", "", `got "second", want "first"`},
		}},
		{"check of digests in names", []edit{never(image, "named", "d.Digest() != m.Digest")}, pkg, "TestFalseDigest", false, []attack{
			{"give an image of an archive the digest of another one", "", accepted},
		}},
		{"pulls without progress give up their slots", []edit{slow}, pkg, "TestSlowRegistriesBlockNobody", false, []attack{
			{"keep other pods from starting with a registry that sends a byte from time to time", "", "pull beside two slow ones: "},
		}},
		{"imports without progress give up their slots", []edit{slow}, pkg, "TestDeepIndexesBlockNobody", false, []attack{
			{"keep other images from being imported by archives that are read slowly", "", "import beside deep indexes: "},
		}},
		{"minimum rate of registries", []edit{never(image, "pacedConn.read", "minRate")}, pkg, "TestTooSlowRegistryFails", false, []attack{
			{"let a pull take forever with a byte from time to time", "", "context deadline exceeded, want an *Error"},
		}},
		{"check of connections", []edit{local}, pkg, "TestLocalServicesAreNotReached", false, []attack{
			{"redirect a pull to the host's loopback", "", "address (port"},
			{"redirect a pull to a name of the host's loopback", "", "name that resolves to the loopback (port"},
			{"redirect a pull to a mapped address of the host's loopback", "", "mapped address (port"},
			{"redirect a pull to the host's loopback behind a proxy", "", "redirect behind a proxy (port"},
		}},
		{"check of connections", []edit{local}, pkg, "TestAuthenticationRealms", false, []attack{
			{"name the host's loopback as the realm of an authentication", "TestAuthenticationRealms/loopback", accepted},
			{
				"name a mapped address of the host's loopback as the realm of an authentication", "TestAuthenticationRealms/mapped_address",
				accepted,
			},
		}},
		{"the DNS is asked once for each pull", []edit{local}, pkg, "TestRegistryNamedByTheDNS", false, []attack{
			{
				"change the address of a registry to the loopback during a pull", "TestRegistryNamedByTheDNS/moves_to_the_loopback",
				"<nil>, want allowed: false",
			},
		}},
	}
}
