package render

import "strconv"

// cloud makes a network volume of a public cloud, through its own CSI driver.
func (req Request) cloud() []Object {
	provisioner, parameters, driver := "ebs.csi.aws.com", map[string]string{"csi.storage.k8s.io/fstype": "xfs"}, "the Amazon EBS CSI driver"
	reasons := map[string]string{`parameters["csi.storage.k8s.io/fstype"]`: "xfs: parallel writes into one file, and no lost+found in the data directory"}
	iops, mibps := "iops", "throughput"
	switch req.Storage {
	case GP3:
		parameters["type"] = "gp3"
	case IO2:
		parameters["type"] = "io2"
	case Hyperdisk:
		provisioner, driver = "pd.csi.storage.gke.io", "the Compute Engine persistent disk CSI driver"
		iops, mibps = "provisioned-iops-on-create", "provisioned-throughput-on-create"
		parameters["type"] = "hyperdisk-balanced"
	case PremiumV2:
		provisioner, driver = "disk.csi.azure.com", "the Azure disk CSI driver"
		iops, mibps = "DiskIOPSReadWrite", "DiskMBpsReadWrite"
		parameters["skuName"], parameters["cachingMode"] = "PremiumV2_LRS", "None"
		reasons["parameters.cachingMode"] = "Premium SSD v2 has no host cache"
	}
	if req.IOPS > 0 {
		parameters[iops] = strconv.FormatInt(req.IOPS, 10)
		reasons["parameters."+iops] = "IOPS bound a database on a network volume more than anything else: as asked for with --iops"
	}
	if req.MiBps > 0 {
		parameters[mibps] = strconv.FormatInt(req.MiBps, 10)
		if req.Storage == Hyperdisk {
			parameters[mibps] += "Mi"
		}
		reasons["parameters."+mibps] = "as asked for with --throughput, in MiB/s"
	}
	v, _ := req.volume()
	return []Object{req.class(provisioner, parameters, reasons),
		storageNote("The cluster needs " + driver + " (" + provisioner + ").\nLimits of the volumes: " + v.Source + ". A node has limits of its own, which may be lower:\n" +
			"compare the machine's with the volume's.\n")}
}
