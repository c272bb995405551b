package netpath

import "github.com/google/nftables"

// kubeProxy returns the mode of kube-proxy; "" where none is seen here. Its own links are those of IPVS; the
// other modes are told by their tables and chains. Rules of the old iptables (legacy) are not seen.
func kubeProxy(ipvs bool) (string, error) {
	if ipvs {
		return "ipvs", nil
	}
	c, err := nftables.New()
	if err != nil {
		return "", err
	}
	tables, err := c.ListTables()
	if err != nil {
		return "", err
	}
	for _, t := range tables {
		if t.Name == "kube-proxy" {
			return "nftables", nil
		}
	}
	chains, err := c.ListChains()
	if err != nil {
		return "", err
	}
	for _, chain := range chains {
		if chain.Name == "KUBE-SERVICES" {
			return "iptables", nil
		}
	}
	return "", nil
}
