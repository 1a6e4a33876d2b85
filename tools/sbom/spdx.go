package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const (
	relationDescribes = "DESCRIBES"
	relationContains  = "CONTAINS"
	relationDependsOn = "DEPENDS_ON"
	noAssertion       = "NOASSERTION"
)

func writeSPDX(f *os.File, m *material) error {
	release := &spdx.Package{
		PackageName: "podstead", PackageSPDXIdentifier: "Package-podstead", PackageVersion: m.version,
		PackageDownloadLocation: "https://github.com/podstead/podstead/releases/tag/v" + m.version,
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{purlOf("pkg:golang/github.com/podstead/podstead@" + m.version)},
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "podstead-" + m.version,
		DocumentNamespace: "https://github.com/podstead/podstead/sbom/" + m.version + "/" + identity(m),
		CreationInfo: &spdx.CreationInfo{
			Created: m.created.Format(time.RFC3339), Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "podstead-sbom"}},
		},
		Packages:      []*spdx.Package{release},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", relationDescribes, release.PackageSPDXIdentifier)},
	}
	for _, dep := range m.modules {
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: dep.path, PackageSPDXIdentifier: moduleID(dep), PackageVersion: dep.version,
			PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion,
			PackageCopyrightText: noAssertion, PackageExternalReferences: []*spdx.PackageExternalReference{purlOf(dep.purl())},
		})
	}
	for _, p := range m.programs {
		id := spdx.ElementID("File-" + p.name)
		doc.Files = append(doc.Files, &spdx.File{
			FileName: "./" + p.name, FileSPDXIdentifier: id, FileTypes: []string{"BINARY"},
			Checksums:        []spdx.Checksum{{Algorithm: spdx.SHA256, Value: p.sha256}},
			LicenseConcluded: noAssertion, LicenseInfoInFiles: []string{noAssertion}, FileCopyrightText: noAssertion,
		})
		doc.Relationships = append(doc.Relationships, relation(release.PackageSPDXIdentifier, relationContains, id))
		for _, dep := range p.modules {
			doc.Relationships = append(doc.Relationships, relation(id, relationDependsOn, moduleID(dep)))
		}
	}
	return spdxjson.Write(doc, f, spdxjson.Indent("  "))
}

// identity returns a name for the programs: two documents have the same namespace only if they describe the same programs.
func identity(m *material) string {
	h := sha256.New()
	for _, p := range m.programs {
		h.Write([]byte(p.name + "\x00" + p.sha256 + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func moduleID(m module) spdx.ElementID {
	sum := sha256.Sum256([]byte(m.purl()))
	return spdx.ElementID("Module-" + hex.EncodeToString(sum[:8]))
}

func purlOf(locator string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{Category: spdx.CategoryPackageManager, RefType: "purl", Locator: locator}
}

func relation(from spdx.ElementID, kind string, to spdx.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: kind,
	}
}
