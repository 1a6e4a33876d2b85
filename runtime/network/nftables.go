package network

import (
	"fmt"
	"time"

	"github.com/google/nftables"
	mnetlink "github.com/mdlayher/netlink"
)

// Nftables is a connection to nftables in a network namespace.
type Nftables struct {
	*nftables.Conn
	socket *mnetlink.Conn
}

// Nftables opens a connection to nftables. Replies must arrive within replyTimeout. The caller closes it with CloseLasting.
func (n Namespace) Nftables() (*Nftables, error) {
	f := &Nftables{}
	options := []nftables.ConnOption{nftables.AsLasting(), nftables.WithSockOptions(func(c *mnetlink.Conn) error {
		f.socket = c
		return c.SetDeadline(time.Now().Add(replyTimeout))
	})}
	if n.file != nil {
		options = append(options, nftables.WithNetNSFd(int(n.file.Fd())))
	}
	var err error
	if f.Conn, err = nftables.New(options...); err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return f, nil
}

// ExtendDeadline allows another replyTimeout for replies.
func (c *Nftables) ExtendDeadline() error { return c.socket.SetDeadline(time.Now().Add(replyTimeout)) }
