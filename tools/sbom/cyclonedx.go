package main

import (
	"os"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func writeCycloneDX(f *os.File, m *material) error {
	bom := cdx.NewBOM()
	root := "pkg:golang/github.com/podstead/podstead@" + m.version
	bom.Metadata = &cdx.Metadata{
		Timestamp: m.created.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{BOMRef: root, Type: cdx.ComponentTypeApplication, Name: "podstead", Version: m.version, PackageURL: root},
	}
	var components []cdx.Component
	var dependencies []cdx.Dependency
	var programs []string
	for _, p := range m.programs {
		components = append(components, cdx.Component{
			BOMRef: p.name, Type: cdx.ComponentTypeFile, Name: p.name, Version: m.version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.sha256}},
		})
		programs = append(programs, p.name)
		var used []string
		for _, dep := range p.modules {
			used = append(used, dep.purl())
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: p.name, Dependencies: &used})
	}
	for _, dep := range m.modules {
		components = append(components, cdx.Component{
			BOMRef: dep.purl(), Type: cdx.ComponentTypeLibrary, Name: dep.path, Version: dep.version, PackageURL: dep.purl(),
		})
	}
	dependencies = append(dependencies, cdx.Dependency{Ref: root, Dependencies: &programs})
	bom.Components, bom.Dependencies = &components, &dependencies
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}
