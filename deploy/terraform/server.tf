# The server's machine, where the module makes one. It makes its own certificate at its first boot; the key never leaves it.

locals {
  # By the role the autoscaler knows that this machine isn't one that it bought.
  server_tags = merge(local.tags, { "sojourn:role" = "server" })
}

resource "aws_eip" "server" {
  count  = var.server == null ? 0 : 1
  domain = "vpc"
  tags   = local.tags
}

resource "aws_eip_association" "server" {
  count         = var.server == null ? 0 : 1
  allocation_id = aws_eip.server[0].id
  instance_id   = aws_instance.server[0].id
}

resource "aws_instance" "server" {
  count                  = var.server == null ? 0 : 1
  ami                    = var.server.image
  instance_type          = var.server.instance_type
  subnet_id              = local.subnet_ids[0]
  vpc_security_group_ids = [aws_security_group.server.id]
  iam_instance_profile   = aws_iam_instance_profile.server.name
  tags                   = local.server_tags
  volume_tags            = local.server_tags

  user_data = templatefile("${path.module}/server.yaml.tftpl", {
    boot            = base64encode(file("${path.module}/server-boot"))
    public_address  = aws_eip.server[0].public_ip
    port            = var.port
    release_url     = var.server.release_url
    release_sha256  = var.server.release_sha256
    programs_url    = var.server.programs_url
    programs_sha256 = var.server.programs_sha256
    fleet_file      = ""
    user_data_file  = ""
  })

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.server.disk_gb
    encrypted   = true
  }

  lifecycle {
    # The journal is on this machine's disk: neither a newer image nor another release makes a new machine of it.
    ignore_changes = [ami, user_data]
  }
}
