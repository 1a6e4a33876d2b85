package stats

import (
	"fmt"
	"net"

	"github.com/podstead/podstead/runtime/network"
)

// interfaces reads the counters of the interfaces that are up in a network namespace. A path that is not a network namespace is an error.
func interfaces(path string) ([]Interface, error) {
	namespace, err := network.OpenNamespace(path)
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	links, err := namespace.Netlink()
	if err != nil {
		return nil, err
	}
	defer links.Close()
	all, err := network.DumpLinks(links.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var list []Interface
	for _, link := range all {
		a := link.Attrs()
		if a.Flags&net.FlagLoopback != 0 || a.Flags&net.FlagUp == 0 || a.Statistics == nil {
			continue
		}
		s := a.Statistics
		list = append(list, Interface{
			Name: a.Name, RxBytes: s.RxBytes, RxErrors: s.RxErrors, TxBytes: s.TxBytes, TxErrors: s.TxErrors,
			RxPackets: s.RxPackets, RxDropped: s.RxDropped, TxPackets: s.TxPackets, TxDropped: s.TxDropped,
		})
	}
	return list, nil
}
