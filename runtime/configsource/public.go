package configsource

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// publicBlocks are the types of the PEM blocks that a server shows to all of its clients, or that anybody may know.
var publicBlocks = []string{
	"CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CRL", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST",
	"PUBLIC KEY", "RSA PUBLIC KEY", "DH PARAMETERS", "EC PARAMETERS",
}

// isPublic reports whether a file contains certificates and nothing that is private. Programs that renew certificates write them with mode
// 0644 beside private keys with mode 0600. Text around the blocks, such as the name of the issuer, is public too.
func isPublic(content []byte) bool {
	blocks := bytes.Split(content, []byte("-----BEGIN "))[1:]
	for _, block := range blocks {
		label, _, ended := bytes.Cut(block, []byte("-----"))
		if !ended || !slices.Contains(publicBlocks, string(label)) {
			return false
		}
	}
	if len(blocks) > 0 {
		return true
	}
	_, err := x509.ParseCertificate(content) // in DER
	return err == nil
}
