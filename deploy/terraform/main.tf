# A fleet's network, its rights, and optionally the server's machine. The fleet's machines themselves are bought by the
# autoscaler, which knows them by the tag sojourn:fleet.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_availability_zones" "available" {
  state = "available"

  # No local zones: they have few types, at other prices.
  filter {
    name   = "zone-type"
    values = ["availability-zone"]
  }
}

locals {
  name       = "sojourn-${var.fleet}"
  tags       = merge(var.tags, { "sojourn:fleet" = var.fleet, "Name" = local.name })
  makes_vpc  = length(var.subnet_ids) == 0
  vpc_id     = local.makes_vpc ? aws_vpc.own[0].id : var.vpc_id
  subnet_ids = local.makes_vpc ? aws_subnet.own[*].id : var.subnet_ids
  zones      = slice(data.aws_availability_zones.available.names, 0, min(var.zones, length(data.aws_availability_zones.available.names)))
}

# The network: public subnets, since what machines fetch and send shouldn't be paid for at a NAT gateway besides. No machine
# listens to anything but the server's port.

resource "aws_vpc" "own" {
  count                = local.makes_vpc ? 1 : 0
  cidr_block           = var.vpc_cidr
  enable_dns_hostnames = true
  tags                 = local.tags
}

resource "aws_internet_gateway" "own" {
  count  = local.makes_vpc ? 1 : 0
  vpc_id = aws_vpc.own[0].id
  tags   = local.tags
}

resource "aws_route_table" "own" {
  count  = local.makes_vpc ? 1 : 0
  vpc_id = aws_vpc.own[0].id
  tags   = local.tags

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.own[0].id
  }
}

resource "aws_subnet" "own" {
  count                   = local.makes_vpc ? length(local.zones) : 0
  vpc_id                  = aws_vpc.own[0].id
  availability_zone       = local.zones[count.index]
  cidr_block              = cidrsubnet(var.vpc_cidr, 4, count.index)
  map_public_ip_on_launch = true
  tags                    = local.tags
}

resource "aws_route_table_association" "own" {
  count          = local.makes_vpc ? length(local.zones) : 0
  subnet_id      = aws_subnet.own[count.index].id
  route_table_id = aws_route_table.own[0].id
}

# Who reaches whom: one port of one machine is open.

resource "aws_security_group" "machine" {
  name        = "${local.name}-machine"
  description = "Machines of the fleet: nothing reaches them"
  vpc_id      = local.vpc_id
  tags        = local.tags

  lifecycle {
    precondition {
      condition     = local.makes_vpc || var.vpc_id != null
      error_message = "subnet_ids need the vpc_id that they are in."
    }
  }
}

resource "aws_vpc_security_group_egress_rule" "machine" {
  security_group_id = aws_security_group.machine.id
  description       = "To the server, the store and the cloud"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_security_group" "server" {
  name        = "${local.name}-server"
  description = "The server: its port alone"
  vpc_id      = local.vpc_id
  tags        = local.tags
}

resource "aws_vpc_security_group_egress_rule" "server" {
  security_group_id = aws_security_group.server.id
  description       = "To the store and the cloud"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_vpc_security_group_ingress_rule" "machines" {
  security_group_id            = aws_security_group.server.id
  ip_protocol                  = "tcp"
  from_port                    = var.port
  to_port                      = var.port
  referenced_security_group_id = aws_security_group.machine.id
}

resource "aws_vpc_security_group_ingress_rule" "allowed" {
  for_each          = toset(var.allowed_cidrs)
  security_group_id = aws_security_group.server.id
  description       = "People and machines outside"
  ip_protocol       = "tcp"
  from_port         = var.port
  to_port           = var.port
  cidr_ipv4         = each.value
}

# Rights. The autoscaler's are a file of their own, which a test compares with the calls that it makes. Machines of the fleet
# have none.

data "aws_iam_policy_document" "ec2" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_policy" "autoscaler" {
  name        = "${local.name}-autoscaler"
  description = "Buy, see and end machines with the tag sojourn:fleet=${var.fleet}, and no others"
  tags        = local.tags

  policy = templatefile("${path.module}/autoscaler-policy.json", {
    partition = data.aws_partition.current.partition
    account   = data.aws_caller_identity.current.account_id
    fleet     = var.fleet
  })
}

resource "aws_iam_role" "server" {
  name               = "${local.name}-server"
  description        = "Server and autoscaler of the fleet ${var.fleet}"
  assume_role_policy = data.aws_iam_policy_document.ec2.json
  tags               = local.tags
}

resource "aws_iam_role_policy_attachment" "autoscaler" {
  role       = aws_iam_role.server.name
  policy_arn = aws_iam_policy.autoscaler.arn
}

# No port is opened for operators: they come by the cloud's own Session Manager.
resource "aws_iam_role_policy_attachment" "operators" {
  role       = aws_iam_role.server.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_instance_profile" "server" {
  name = "${local.name}-server"
  role = aws_iam_role.server.name
  tags = local.tags
}
