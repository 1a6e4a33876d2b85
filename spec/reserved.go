package spec

import (
	"slices"
	"strings"
)

// reservedNames are the names that hosts files define for the host itself and for
// its network. The names of pods are in the hosts files of all pods.
var reservedNames = []string{
	"broadcasthost", "ip6-allhosts", "ip6-allnodes", "ip6-allrouters", "ip6-localhost", "ip6-localnet", "ip6-loopback", "ip6-mcastprefix",
	"localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
}

const reservedName = "is reserved for the host"

func isReserved(name string) bool {
	return slices.Contains(reservedNames, name) || strings.HasSuffix(name, ".localhost") // RFC 6761
}

// reserved rejects a name that other hosts files must not redefine.
func (v *validator) reserved(field *string) {
	if isReserved(*field) {
		v.invalid(field, *field, reservedName)
	}
}
